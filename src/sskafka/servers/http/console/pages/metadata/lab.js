/** The lab on this broker: its settings, the last leader and vote, and the readable journal of topics. */
import { Card, Figure, Figures, Loaded } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { number, plural } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { marked } from "../../lib/odd_text.js";

const EVERY_MS = 3000;
const LIMIT = 500;
const who = (id) => (id < 0 ? "nobody" : `broker ${id}`);

const COLUMNS = [
  { name: "offset", title: "Line", value: (one) => one.offset, cell: (one) => number(one.offset) },
  { name: "epoch", title: "Epoch", value: (one) => one.epoch, cell: (one) => number(one.epoch), align: "end" },
  { name: "type", title: "Change", value: (one) => one.type },
  { name: "payload", title: "Topic", value: (one) => one.payload.topic_name, cell: (one) => html`${marked(String(one.payload.topic_name))} <span class="mono muted glance hide-phone">${marked(JSON.stringify(one.payload.partitions ?? []))}</span>`, wide: true },
];

export function Lab() {
  const lab = useData("lab", { limit: LIMIT }, EVERY_MS);
  return html`
    <${Loaded} state=${lab}>${(data) => html`
      <${Figures}>
        <${Figure} label="Leader now" value=${who(data.leader_id)} />
        ${data.quorum_state && html`
          <${Figure} label="Last leader accepted" value=${who(data.quorum_state.leader_id)} note=${`epoch ${data.quorum_state.leader_epoch}`} />
          <${Figure} label="Voted for" value=${who(data.quorum_state.voted_id)} note=${`by broker ${data.node_id}`} />`}
        <${Figure} label="Journal" value=${number(data.lines)} note="lines" />
      <//>
      <${Card} title="Settings of the lab">
        ${Object.entries(data.settings).map(([name, value]) => html`<p key=${name}><code>${name}=${value}</code></p>`)}
        ${data.journal_file === null && html`<p class="note">This broker keeps no readable files: set <code>metadata.log.dir</code> apart from <code>log.dirs</code>.</p>`}
      <//>
      ${data.journal_file !== null && html`
        <${Card} flush title="Journal of topics">
          <p class="note mono">${data.journal_file}</p>
          <${Table} label="Journal" noun="line" columns=${COLUMNS} rows=${data.journal} keyOf=${(one) => String(one.offset)} initialSort=${{ name: "offset", descending: true }} empty="No topic was created yet." />
          ${data.lines > data.journal.length && html`<p class="note">${plural(data.lines - data.journal.length, "older line")} not shown.</p>`}
        <//>`}`}
    <//>`;
}
