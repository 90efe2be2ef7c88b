/** The overview: what needs attention, traffic, the brokers, the quorum and the partitions in trouble. */
import { Card, Figure, Figures, Loading, PageTitle } from "../components/basics.js";
import { Icon } from "../components/icons.js";
import { bytesPerSecond, number, perSecond } from "../lib/format.js";
import { html } from "../lib/html.js";
import { useLive } from "../lib/live.js";
import { loadHistory } from "../lib/load_history.js";
import { useStore } from "../lib/store.js";
import { Brokers } from "./overview/brokers.js";
import { Quorum } from "./overview/quorum.js";
import { Requests, Traffic } from "./overview/traffic.js";

export default function Overview() {
  const health = useLive("health");
  return html`
    <${PageTitle} title="Overview" />
    ${health === null ? html`<${Loading} />` : html`<${Health} health=${health} />`}`;
}

function Health({ health }) {
  const history = useStore(loadHistory);
  const now = history.points.at(-1);
  return html`
    <${Attention} items=${health.attention} />
    <${Figures}>
      <${Figure} label="Brokers" value=${number(health.brokers.filter((broker) => !broker.is_fenced).length)} note=${`of ${health.brokers.length}`} />
      <${Figure} label="Topics" value=${number(health.topics)} />
      <${Figure} label="Partitions" value=${number(health.partitions)} />
      <${Figure} label="In" value=${bytesPerSecond(now?.bytes_in)} note=${`${perSecond(now?.messages_in)} records`} />
      <${Figure} label="Out to clients" value=${bytesPerSecond(now?.bytes_out)} />
      <${Figure} label="Requests" value=${perSecond(now?.requests)} />
    <//>
    <${Troubles} health=${health} />
    <${Traffic} points=${history.points} />
    <${Brokers} brokers=${health.brokers} load=${history.newest} rates=${history.brokers} />
    <div class="columns">
      <${Quorum} key=${health.quorum.leader_epoch} quorum=${health.quorum} />
      <${Requests} apis=${history.apis} />
    </div>`;
}

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

const TROUBLES = [
  ["offline", "Offline partitions", "bad"],
  ["under_min_isr", "Under min ISR", "bad"],
  ["at_min_isr", "At min ISR", "warning"],
  ["under_replicated", "Under-replicated", "warning"],
  ["not_preferred", "Not at the preferred leader", "warning"],
];

const Troubles = ({ health }) => html`
  <${Card}>
    <dl class="troubles">
      ${TROUBLES.map(([name, label, tone]) => html`
        <div key=${name} class=${health[name] > 0 ? tone : "good"}><dt>${label}</dt><dd>${number(health[name])}</dd></div>`)}
    </dl>
  <//>`;
