/** The overview: what needs attention, the brokers, the quorum and the partitions. */
import { Badge, Card, Figure, Figures, Loading, Meter, PageTitle } from "../components/basics.js";
import { Icon } from "../components/icons.js";
import { Table } from "../components/table.js";
import { bytes, number, percent } from "../lib/format.js";
import { html } from "../lib/html.js";
import { useLive } from "../lib/live.js";

export default function Overview() {
  const health = useLive("health");
  return html`
    <${PageTitle} title="Overview" />
    ${health === null ? html`<${Loading} />` : html`<${Health} health=${health} />`}`;
}

const Health = ({ health }) => html`
  <${Attention} items=${health.attention} />
  <${Figures}>
    <${Figure} label="Brokers" value=${number(health.brokers.filter((broker) => !broker.is_fenced).length)} note=${`of ${health.brokers.length}`} />
    <${Figure} label="Topics" value=${number(health.topics)} />
    <${Figure} label="Partitions" value=${number(health.partitions)} />
    <${Trouble} label="Offline" count=${health.offline} tone="bad" />
    <${Trouble} label="Under min ISR" count=${health.under_min_isr} tone="bad" />
    <${Trouble} label="At min ISR" count=${health.at_min_isr} tone="warning" />
    <${Trouble} label="Under-replicated" count=${health.under_replicated} tone="warning" />
  <//>
  <${Brokers} brokers=${health.brokers} />
  <${Quorum} quorum=${health.quorum} />`;

const Trouble = ({ label, count, tone }) => html`<${Figure} label=${label} value=${number(count)} tone=${count > 0 ? tone : "good"} />`;

function Attention({ items }) {
  if (items.length === 0) {
    return html`<div class="attention calm" role="status"><${Icon} name="check" /> Nothing needs attention.</div>`;
  }
  return html`
    <ul class="attention" role="status">
      ${items.map((item) => html`
        <li key=${item.text} class=${item.severity === "error" ? "bad" : "warning"}>
          <${Icon} name=${item.severity === "error" ? "error" : "warning"} />
          <div><strong>${sentence(item.text)}</strong><p>Next step: ${withCode(item.next_step)}</p></div>
        </li>`)}
    </ul>`;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Commands in backquotes are shown as code. */
const withCode = (text) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

const BROKER_COLUMNS = [
  { name: "node_id", title: "Broker", value: (broker) => broker.node_id },
  { name: "state", title: "State", value: (broker) => Number(broker.is_fenced), cell: (broker) => html`<${State} broker=${broker} />` },
  { name: "address", title: "Address", value: (broker) => broker.address, cell: (broker) => html`<span class="mono">${broker.address}</span>`, hide: "phone" },
  { name: "rack", title: "Rack", value: (broker) => broker.rack ?? "", hide: "phone" },
  { name: "leaders", title: "Leaders", align: "end", value: (broker) => broker.leaders, cell: (broker) => number(broker.leaders) },
  { name: "replicas", title: "Replicas", align: "end", value: (broker) => broker.replicas, cell: (broker) => number(broker.replicas) },
  { name: "logs", title: "Logs", align: "end", value: (broker) => broker.log_bytes, cell: (broker) => bytes(broker.log_bytes) },
  { name: "disk", title: "Disk used", align: "end", value: (broker) => usedShare(broker), cell: (broker) => html`<${Disk} broker=${broker} />` },
];

const State = ({ broker }) => html`
  <${Badge} tone=${broker.is_fenced ? "bad" : "good"}>${broker.is_fenced ? "fenced" : "active"}<//>
  ${broker.is_controller && html` <${Badge} tone="accent">controller<//>`}`;

const usedShare = (broker) => (broker.disk_total_bytes ? 1 - broker.disk_usable_bytes / broker.disk_total_bytes : null);

function Disk({ broker }) {
  const share = usedShare(broker);
  if (share === null) return "–";
  const tone = share > 0.95 ? "bad" : share > 0.9 ? "warning" : "";
  return html`<${Meter} share=${share} tone=${tone} label=${`${bytes(broker.disk_usable_bytes)} of ${bytes(broker.disk_total_bytes)} free`} /> ${percent(share)}`;
}

const Brokers = ({ brokers }) => html`
  <${Card} title="Brokers" flush>
    <${Table} label="Brokers" columns=${BROKER_COLUMNS} rows=${brokers} keyOf=${(broker) => broker.node_id} />
  <//>`;

const Quorum = ({ quorum }) => html`
  <${Card} title="Quorum of controllers">
    <p class="muted">Node ${quorum.leader_id} leads in epoch ${number(quorum.leader_epoch)}; high watermark of the metadata log: ${number(quorum.high_watermark)}.</p>
    <ul class="voters">
      ${quorum.voters.map((voter) => html`
        <li key=${voter.node_id}>
          <strong>Node ${voter.node_id}</strong>
          <${Badge} tone=${voter.node_id === quorum.leader_id ? "accent" : ""}>${voter.node_id === quorum.leader_id ? "leader" : "voter"}<//>
          <span class="muted">lag ${number(voter.lag)}</span>
        </li>`)}
    </ul>
  <//>`;
