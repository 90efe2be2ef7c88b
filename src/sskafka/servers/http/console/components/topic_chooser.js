/** A list of topics that lead to a page of theirs. */
import { useData } from "../lib/data.js";
import { html, useMemo, useState } from "../lib/html.js";
import { link } from "../lib/router.js";
import { Loaded, PageTitle } from "./basics.js";
import { Table } from "./table.js";

const LIMIT = 1000;
const COLUMNS = [
  { name: "name", title: "Topic", value: (topic) => topic.name, wide: true },
  { name: "partitions", title: "Partitions", value: (topic) => topic.partitions, align: "end" },
];

/** The search is the server's, so that one of 10,000 topics is found as fast as one of ten. */
export function TopicChooser({ title, page }) {
  const [search, setSearch] = useState("");
  const topics = useData("topics", { search, limit: LIMIT });
  const rows = useMemo(() => (topics.data?.topics ?? []).filter((topic) => !topic.is_internal || search !== ""), [topics.data]);
  return html`
    <${PageTitle} title=${title} />
    <section class="card flush">
      <${Loaded} state=${{ ...topics, data: topics.data ?? (search ? { topics: [] } : null) }}>
        ${() => html`<${Table} label="Topics" noun="topic" columns=${COLUMNS} rows=${rows} keyOf=${(topic) => topic.name} textOf=${(topic) => topic.name}
          search=${search} onSearch=${setSearch} linkOf=${(topic) => link(page, [topic.name])}
          empty="There are no topics. Search to see internal ones." />`}
      <//>
    </section>`;
}
