/** Pipelines: the list at #/pipelines, one pipeline at #/pipelines/NAME. */
import { html } from "../lib/html.js";
import { PipelineList } from "./pipelines/list.js";
import { PipelinePage } from "./pipelines/pipeline.js";

export default function Pipelines({ parts, query }) {
  const [name] = parts;
  return name === undefined ? html`<${PipelineList} />` : html`<${PipelinePage} key=${name} name=${name} query=${query} />`;
}
