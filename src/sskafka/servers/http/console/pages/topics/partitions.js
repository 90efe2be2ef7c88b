/** The partitions of a topic: leader, replicas with their lag, offsets, and sizes by broker and directory. */
import { Card, Loaded } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { bytes, number } from "../../lib/format.js";
import { classes, html, useMemo } from "../../lib/html.js";

const REFRESH_MS = 4000;

export function Partitions({ topic }) {
  const replicas = useData(`topics/${encodeURIComponent(topic.name)}/replicas`, {}, REFRESH_MS);
  const rows = useMemo(() => joined(topic.partitions, replicas.data?.replicas ?? []), [topic, replicas.data]);
  return html`
    <${Card} title="Partition map" flush actions=${html`<${Legend} />`}>
      <${Table} label="Partitions" noun="partition" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.partition} />
    <//>
    <${Loaded} state=${replicas}>${(data) => html`<${Directories} replicas=${data.replicas} />`}<//>`;
}

/** Each partition with its replicas as /replicas describes them; those that are not described yet have no lag. */
function joined(partitions, described) {
  const found = new Map(described.map((one) => [`${one.partition} ${one.broker_id}`, one]));
  return partitions.map((partition) => ({
    ...partition,
    replicas: partition.replicas.map((broker) => found.get(`${partition.partition} ${broker}`) ?? {
      broker_id: broker, is_leader: broker === partition.leader, is_in_sync: partition.isr.includes(broker), lag: null, copies: [],
    }),
  }));
}

const sizeOf = (row) => row.replicas.find((one) => one.is_leader)?.copies.reduce((sum, copy) => sum + copy.log_bytes, 0) ?? null;
const lagOf = (row) => Math.max(0, ...row.replicas.map((one) => one.lag ?? 0));

const COLUMNS = [
  { name: "partition", title: "Partition", value: (row) => row.partition },
  { name: "replicas", title: "Replicas", value: lagOf, cell: (row) => html`<${ReplicaMap} row=${row} />` },
  { name: "leader", title: "Leader", align: "end", value: (row) => row.leader, cell: (row) => (row.leader < 0 ? html`<strong class="bad">none</strong>` : row.leader), hide: "phone" },
  { name: "epoch", title: "Epoch", align: "end", value: (row) => row.leader_epoch, hide: "phone" },
  { name: "start", title: "Log start", align: "end", value: (row) => row.log_start_offset, cell: (row) => number(row.log_start_offset), hide: "phone" },
  { name: "end", title: "High watermark", align: "end", value: (row) => row.high_watermark, cell: (row) => number(row.high_watermark) },
  { name: "size", title: "Size", align: "end", value: sizeOf, cell: (row) => bytes(sizeOf(row)) },
];

const ReplicaMap = ({ row }) => html`
  <ul class="replicas" aria-label=${`Replicas of partition ${row.partition}`}>
    ${row.replicas.map((one) => html`
      <li key=${one.broker_id} class=${classes(one.is_leader && "leader", !one.is_in_sync && "behind")} title=${describe(one)}>
        <span class="unseen">broker </span>${one.broker_id}<span class="unseen">: ${describe(one)}</span>
        ${one.lag > 0 && html`<small aria-hidden="true">−${number(one.lag)}</small>`}
      </li>`)}
  </ul>`;

function describe(replica) {
  const role = replica.is_leader ? "leader" : replica.is_in_sync ? "in sync" : "not in sync";
  return replica.lag === null ? role : `${role}, ${number(replica.lag)} records behind the leader`;
}

const Legend = () => html`
  <span class="legend muted" aria-hidden="true">
    <ul class="replicas"><li class="leader">1</li></ul> leader
    <ul class="replicas"><li>2</li></ul> in sync
    <ul class="replicas"><li class="behind">3</li></ul> not in sync
  </span>`;

const DIRECTORY_COLUMNS = [
  { name: "broker", title: "Broker", value: (row) => row.broker },
  { name: "directory", title: "Directory", wide: true, value: (row) => row.directory, cell: (row) => html`<span class="mono" title=${row.directory}>${row.directory}</span>` },
  { name: "replicas", title: "Replicas", align: "end", value: (row) => row.replicas, cell: (row) => number(row.replicas) },
  { name: "moving", title: "Being moved here", align: "end", value: (row) => row.moving, cell: (row) => number(row.moving), hide: "phone" },
  { name: "size", title: "Size", align: "end", value: (row) => row.log_bytes, cell: (row) => bytes(row.log_bytes) },
];

function Directories({ replicas }) {
  const rows = useMemo(() => byDirectory(replicas), [replicas]);
  return html`
    <${Card} title="Size by broker and directory" flush>
      <${Table} label="Directories" columns=${DIRECTORY_COLUMNS} rows=${rows} keyOf=${(row) => `${row.broker} ${row.directory}`} empty="No broker has answered." />
    <//>`;
}

function byDirectory(replicas) {
  const found = new Map();
  for (const replica of replicas) {
    for (const copy of replica.copies) {
      const key = `${replica.broker_id} ${copy.directory}`;
      const row = found.get(key) ?? { broker: replica.broker_id, directory: copy.directory, replicas: 0, moving: 0, log_bytes: 0 };
      row.replicas += Number(!copy.is_moving);
      row.moving += Number(copy.is_moving);
      row.log_bytes += copy.log_bytes;
      found.set(key, row);
    }
  }
  return [...found.values()];
}
