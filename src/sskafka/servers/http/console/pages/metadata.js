/** Metadata: the cluster as a tree of paths, the newest records of the metadata log, and the lab and the challenge where they are on. */
import { Badge, Button, Card, Loaded, PageTitle, Tabs } from "../components/basics.js";
import { Paged } from "../components/paged.js";
import { useData } from "../lib/data.js";
import { number, plural, time } from "../lib/format.js";
import { html, useState } from "../lib/html.js";
import { marked } from "../lib/odd_text.js";
import { usePages } from "../lib/pages_of.js";
import { link } from "../lib/router.js";
import { useSession } from "../lib/session.js";
import { Challenge } from "./metadata/challenge.js";
import { Lab } from "./metadata/lab.js";

const TABS = [
  { name: "tree", title: "Tree", page: Tree }, { name: "log", title: "Metadata log", page: MetadataLog },
  { name: "lab", title: "Lab", page: Lab, feature: "lab" }, { name: "challenge", title: "Challenge", page: Challenge, feature: "challenge" },
];
const LIMIT = 1000;
const PAGE = 100;

export default function Metadata({ query }) {
  const { features } = useSession();
  const tabs = TABS.filter((tab) => !tab.feature || features.includes(tab.feature));
  const chosen = tabs.find((tab) => tab.name === query.tab) ?? tabs[0];
  return html`
    <${PageTitle} title="Metadata" />
    <${Tabs} tabs=${tabs} chosen=${chosen.name} />
    <${chosen.page} key=${chosen.name} />`;
}

function Tree() {
  const [turn, setTurn] = useState(0);
  return html`
    <${Card} title="The cluster in the layout of ZooKeeper" actions=${html`<${Button} kind="quiet" onClick=${() => setTurn(turn + 1)}>Read again<//>`}>
      <${Children} key=${turn} path="/" />
    <//>`;
}

/** The paths below a path. They are read when they are first shown. */
function Children({ path }) {
  const found = useData("metadata", { path, limit: LIMIT });
  return html`
    <${Loaded} state=${found}>${(node) => html`
      <ul class="tree" aria-label=${`Below ${path}`}>
        ${node.children.map((child) => html`<${Node} key=${child.name} path=${`${path === "/" ? "" : path}/${child.name}`} child=${child} />`)}
      </ul>
      ${node.left_out > 0 && html`<p class="note">${plural(node.left_out, "more path")}.</p>`}`}
    <//>`;
}

function Node({ path, child }) {
  const [isOpen, setOpen] = useState(false);
  const isTopicSettings = path.startsWith("/config/topics/");
  const hasMore = child.has_children || child.data !== null || isTopicSettings;
  return html`
    <li>
      ${hasMore
        ? html`<button type="button" class="row-toggle" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>${child.name}</button>`
        : html`<span class="leaf">${child.name}</span>`}
      ${!isOpen && child.data !== null && html`<span class="glance mono">${marked(JSON.stringify(child.data))}</span>`}
      ${isOpen && child.data !== null && html`<${Data} path=${path} data=${child.data} />`}
      ${isOpen && isTopicSettings && html`<${OwnData} path=${path} />`}
      ${isOpen && child.has_children && html`<${Children} path=${path} />`}
    </li>`;
}

const Data = ({ path, data }) => html`<pre class="data" tabindex="0" aria-label=${`Data of ${path}`}>${marked(JSON.stringify(data, null, 2))}</pre>`;

/** Settings of topics are read one topic at a time. */
function OwnData({ path }) {
  const found = useData("metadata", { path });
  return html`<${Loaded} state=${found}>${(node) => html`<${Data} path=${path} data=${node.data} />`}<//>`;
}

function MetadataLog() {
  const [showsNoOp, setShowsNoOp] = useState(false);
  const found = usePages("metadata/records", { limit: PAGE, no_op: showsNoOp || "" }, ({ next_before: before }) => (before === null ? null : { before }));
  const tools = html`
    <label class="check"><input type="checkbox" checked=${showsNoOp} onChange=${(event) => setShowsNoOp(event.target.checked)} /> No-op records</label>
    <${Button} kind="quiet" onClick=${found.reload}>Read again<//>
    <a class="button quiet" href=${link("log", ["__cluster_metadata", "0"])}>Segments</a>`;
  return html`
    <${Card} flush title="Newest records" actions=${tools}>
      <${Paged} state=${found} label="Older records">${(pages) => html`
        <div class="table-scroll" tabindex="0" role="region" aria-label="Records of the metadata log">
          <table class="metadata-log">
            <thead><tr><th scope="col">Time</th><th scope="col" class="end">Offset</th><th scope="col" class="end hide-phone">Epoch</th><th scope="col">Record</th></tr></thead>
            <tbody>${pages.flatMap((page) => page.records).map((record) => html`<${LogRecord} key=${record.offset} record=${record} />`)}</tbody>
          </table>
        </div>`}
      <//>
    <//>`;
}

function LogRecord({ record }) {
  const [isOpen, setOpen] = useState(false);
  return html`
    <tr class=${isOpen ? "open" : ""}>
      <td class="mono"><button type="button" class="row-toggle" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>${time(record.time_ms)}</button></td>
      <td class="end">${number(record.offset)}</td>
      <td class="end hide-phone">${number(record.leader_epoch)}</td>
      <td class="glance"><${Badge} tone=${record.is_control ? "warning" : undefined}>${record.type}<//> <span class="mono muted">${marked(JSON.stringify(record.data ?? {}))}</span></td>
    </tr>
    ${isOpen && html`<tr class="details"><td colspan="4"><pre class="data" tabindex="0" aria-label=${`Record ${record.offset}`}>${marked(JSON.stringify(record.data, null, 2))}</pre></td></tr>`}`;
}
