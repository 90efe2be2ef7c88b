/** Topics: the list at #/topics, one topic at #/topics/NAME. */
import { html } from "../lib/html.js";
import { TopicList } from "./topics/list.js";
import { TopicPage } from "./topics/topic.js";

export default function Topics({ parts, query }) {
  const [name] = parts;
  return name === undefined
    ? html`<${TopicList} query=${query} />`
    : html`<${TopicPage} key=${name} name=${name} query=${query} />`;
}
