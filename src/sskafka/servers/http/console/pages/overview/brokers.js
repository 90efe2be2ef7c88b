/** The brokers: state, place, versions, disks and traffic. */
import { Badge, Card, Meter } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { bytes, bytesPerSecond, duration, number, percent } from "../../lib/format.js";
import { html, useMemo } from "../../lib/html.js";

const COLUMNS = [
  { name: "node_id", title: "Broker", value: (broker) => broker.node_id },
  { name: "state", title: "State", value: (broker) => Number(broker.is_fenced), cell: (broker) => html`<${State} broker=${broker} />` },
  { name: "address", title: "Address", value: (broker) => broker.address, cell: (broker) => html`<${Place} broker=${broker} />`, hide: "phone" },
  { name: "version", title: "Version", value: (broker) => broker.load?.version, cell: (broker) => html`<${Version} broker=${broker} />`, hide: "phone" },
  { name: "cores", title: "Cores", align: "end", value: (broker) => broker.load?.cores, cell: (broker) => html`<${Cores} broker=${broker} />`, hide: "phone" },
  { name: "memory", title: "Memory", align: "end", value: (broker) => broker.load?.memory_bytes, cell: (broker) => bytes(broker.load?.memory_bytes), hide: "narrow" },
  { name: "in", title: "In", align: "end", value: (broker) => broker.rates?.bytes_in, cell: (broker) => bytesPerSecond(broker.rates?.bytes_in) },
  { name: "out", title: "Out", align: "end", value: (broker) => broker.rates?.bytes_out, cell: (broker) => bytesPerSecond(broker.rates?.bytes_out) },
  { name: "leaders", title: "Leads", align: "end", value: (broker) => broker.leaders, cell: (broker) => html`<${Leads} broker=${broker} />` },
  { name: "logs", title: "Logs", align: "end", value: (broker) => broker.log_bytes, cell: (broker) => bytes(broker.log_bytes) },
  { name: "disk", title: "Disk used", align: "end", value: (broker) => usedShare(broker), cell: (broker) => html`<${Disk} broker=${broker} />` },
];

export function Brokers({ brokers, load, rates }) {
  const rows = useMemo(() => {
    const loads = new Map((load?.brokers ?? []).map((one) => [one.node_id, one]));
    return brokers.map((broker) => ({ ...broker, load: loads.get(broker.node_id), rates: rates.get(broker.node_id) }));
  }, [brokers, load, rates]);
  return html`
    <${Card} title="Brokers" flush>
      <${Table} label="Brokers" columns=${COLUMNS} rows=${rows} keyOf=${(broker) => broker.node_id} />
    <//>`;
}

const State = ({ broker }) => html`
  <${Badge} tone=${broker.is_fenced ? "bad" : "good"}>${broker.is_fenced ? "fenced" : "active"}<//>
  ${broker.is_controller && html` <${Badge} tone="accent">controller<//>`}`;

const Place = ({ broker }) => html`<span class="mono">${broker.address}</span>${broker.rack && html` <small>${broker.rack}</small>`}`;

function Version({ broker }) {
  if (!broker.load) return "–";
  return html`${broker.load.version} <small>up ${duration(broker.load.uptime_ms)}</small>`;
}

/** Cores, and how busy the broker's process keeps them: 100% is one core. */
function Cores({ broker }) {
  const busy = broker.rates?.cpu_ms ?? null;
  return html`${number(broker.load?.cores)}${busy !== null && html` <small>${percent(busy / 1000)} busy</small>`}`;
}

const Leads = ({ broker }) => html`${number(broker.leaders)} <small>of ${number(broker.replicas)}</small>`;

const usedShare = (broker) => (broker.disk_total_bytes ? 1 - broker.disk_usable_bytes / broker.disk_total_bytes : null);

function Disk({ broker }) {
  const share = usedShare(broker);
  if (share === null) return "–";
  const tone = share > 0.95 ? "bad" : share > 0.9 ? "warning" : "";
  const label = `${bytes(broker.disk_usable_bytes)} of ${bytes(broker.disk_total_bytes)} free`;
  return html`<${Meter} share=${share} tone=${tone} label=${label} /> ${percent(share)}`;
}
