/**
 * Log files: the segments of a partition at #/log/TOPIC/PARTITION, one of them at #/log/TOPIC/PARTITION/BASE.
 * `broker` of the query chooses the replica. Without it, the page shows that of the broker that serves it, or the leader's.
 */
import { Badge, Card, Field, Figure, Figures, Loaded, PageTitle, Tabs } from "../components/basics.js";
import { Paged } from "../components/paged.js";
import { Table } from "../components/table.js";
import { TopicChooser } from "../components/topic_chooser.js";
import { useData } from "../lib/data.js";
import { ago, bytes, number, plural, time } from "../lib/format.js";
import { html, useId, useMemo } from "../lib/html.js";
import { useLive } from "../lib/live.js";
import { usePages } from "../lib/pages_of.js";
import { go, link, replaceQuery } from "../lib/router.js";
import { useSession } from "../lib/session.js";

const PAGE = 200;
const TABS = [{ name: "batches", title: "Batches" }, { name: "index", title: "Index entries" }];
const METADATA = "__cluster_metadata";
const isNumber = (text) => /^\d{1,19}$/.test(text ?? "");

export default function Log({ parts, query }) {
  const [topic, given, base] = parts;
  if (topic === undefined) return html`<${TopicChooser} title="Log files" page="log" />`;
  const partition = isNumber(given) ? given : "0";
  const path = `topics/${encodeURIComponent(topic)}/partitions/${partition}/segments`;
  return isNumber(base)
    ? html`<${Segment} key=${`${topic}-${partition}-${base}`} path=${path} topic=${topic} partition=${partition} base=${base} query=${query} />`
    : html`<${Segments} key=${`${topic}-${partition}`} path=${path} topic=${topic} partition=${partition} query=${query} />`;
}

/** The brokers that have a replica, and the one that is shown: null until it is known. */
function useReplica(topic, partition, query) {
  const session = useSession();
  const health = useLive("health");
  const found = useData(topic === METADATA ? null : `topics/${encodeURIComponent(topic)}`);
  const one = found.data?.partitions.find((each) => each.partition === Number(partition));
  const brokers = topic === METADATA ? (health?.brokers ?? []).map((broker) => broker.node_id) : (one?.replicas ?? []);
  const isKnown = session.is_known && (topic === METADATA || found.data !== null || found.error !== null);
  const own = brokers.includes(session.node_id) || !(one?.leader >= 0) ? session.node_id : one.leader;
  const chosen = isNumber(query.broker) ? Number(query.broker) : isKnown ? own : null;
  return { brokers, chosen, count: found.data?.partitions.length ?? 1, leader: one?.leader ?? null };
}

function Segments({ path, topic, partition, query }) {
  const id = useId();
  const { brokers, chosen, count, leader } = useReplica(topic, partition, query);
  const found = useData(chosen === null ? null : path, { broker: chosen }, 5000);
  const columns = useMemo(() => [
    { name: "base", title: "Base offset", value: (one) => one.base_offset, cell: (one) => number(one.base_offset) },
    { name: "size", title: "Size", value: (one) => one.size_bytes, cell: (one) => bytes(one.size_bytes), align: "end" },
    { name: "offsets", title: "Offset index", value: (one) => one.offset_index_entries, cell: (one) => number(one.offset_index_entries), align: "end", hide: "phone" },
    { name: "times", title: "Time index", value: (one) => one.time_index_entries, cell: (one) => number(one.time_index_entries), align: "end", hide: "phone" },
    { name: "aborts", title: "Aborted index", value: (one) => one.transaction_index_bytes, cell: (one) => bytes(one.transaction_index_bytes), align: "end", hide: "phone" },
    { name: "at", title: "Written", value: (one) => one.modified_ms, cell: (one) => html`<span title=${time(one.modified_ms)}>${ago(one.modified_ms)}</span>`, align: "end" },
    { name: "active", title: "", cell: (one) => one.is_active && html`<${Badge} tone="accent">active<//>` },
  ], []);
  return html`
    <${PageTitle} title=${`Segments of ${topic}-${partition}`} back=${{ href: link("log"), label: "Log files" }} />
    ${(count > 1 || brokers.length > 1) && html`
      <${Card}>
        <div class="form-row">
          ${count > 1 && html`<${Field} id=${`${id}-partition`} label="Partition">
            ${(props) => html`<select ...${props} value=${partition} onChange=${(event) => go("log", [topic, event.target.value])}>
              ${Array.from({ length: count }, (_, at) => html`<option key=${at} value=${String(at)}>${at}</option>`)}
            </select>`}
          <//>`}
          ${brokers.length > 1 && html`<${Field} id=${`${id}-broker`} label="Broker">
            ${(props) => html`<select ...${props} value=${String(chosen)} onChange=${(event) => replaceQuery({ broker: event.target.value })}>
              ${brokers.map((broker) => html`<option key=${broker} value=${String(broker)}>${broker}${broker === leader ? " (leader)" : ""}</option>`)}
            </select>`}
          <//>`}
        </div>
      <//>`}
    <section class="card flush">
      <${Loaded} state=${found}>${(data) => html`
        <p class="note">Broker ${data.broker_id}, <span class="mono">${data.directory}</span></p>
        <${Table} label="Segments" noun="segment" columns=${columns} rows=${data.segments} keyOf=${(one) => String(one.base_offset)}
          linkOf=${(one) => link("log", [topic, partition, String(one.base_offset)], { broker: data.broker_id })} initialSort=${{ name: "base", descending: true }} />
        ${data.left_out > 0 && html`<p class="note">${plural(data.left_out, "older segment")} not shown.</p>`}`}
      <//>
    </section>`;
}

function Segment({ path, topic, partition, base, query }) {
  const chosen = query.tab === "index" ? "index" : "batches";
  const segment = `${path}/${base}`;
  const broker = isNumber(query.broker) ? query.broker : "";
  return html`
    <${PageTitle} title=${`${topic}-${partition} from ${number(Number(base))}`} back=${{ href: link("log", [topic, partition], { broker }), label: broker ? `Segments on broker ${broker}` : "Segments" }} />
    <${Tabs} tabs=${TABS} chosen=${chosen} />
    ${chosen === "batches" ? html`<${Batches} path=${`${segment}/batches`} broker=${broker} />` : html`<${Index} path=${`${segment}/index`} broker=${broker} />`}`;
}

const BATCH_COLUMNS = [
  { name: "base", title: "Offsets", value: (one) => one.base_offset, cell: (one) => (one.base_offset === one.last_offset ? number(one.base_offset) : `${number(one.base_offset)} – ${number(one.last_offset)}`) },
  { name: "records", title: "Records", value: (one) => one.records, cell: (one) => number(one.records), align: "end" },
  { name: "position", title: "Position", value: (one) => one.position, cell: (one) => number(one.position), align: "end", hide: "phone" },
  { name: "size", title: "Size", value: (one) => one.size_bytes, cell: (one) => bytes(one.size_bytes), align: "end" },
  { name: "time", title: "Newest timestamp", value: (one) => one.max_timestamp_ms, cell: (one) => time(one.max_timestamp_ms), align: "end" },
  { name: "codec", title: "Codec", value: (one) => one.compression, hide: "phone" },
  { name: "producer", title: "Producer", value: (one) => one.producer_id, cell: (one) => (one.producer_id === null ? html`<span class="muted">–</span>` : html`<span title=${`epoch ${one.producer_epoch}, sequence ${one.base_sequence}`}>${one.producer_id}</span>`), align: "end", hide: "phone" },
  { name: "epoch", title: "Leader epoch", value: (one) => one.leader_epoch, cell: (one) => number(one.leader_epoch), align: "end", hide: "phone" },
  { name: "kind", title: "", cell: (one) => html`
    ${!one.is_valid && html`<${Badge} tone="bad">wrong checksum<//>`}
    ${one.is_control && html`<${Badge} tone="warning">control<//>`}
    ${one.is_transactional && html`<${Badge}>transaction<//>`}` },
];

function Batches({ path, broker }) {
  const found = usePages(path, { broker, limit: PAGE }, ({ next_position: position }) => (position === null ? null : { position }));
  return html`
    <${Card} flush>
      <${Paged} state=${found} label="Next batches">${(pages) => html`
        <${Table} label="Batches" noun="batch" columns=${BATCH_COLUMNS} rows=${pages.flatMap((page) => page.batches)} keyOf=${(one) => String(one.position)} empty="The segment has no batch yet." />
        ${pages.at(-1).problem && html`<p class="note">The rest cannot be read: ${pages.at(-1).problem}. <code>sskafka log verify</code> says more.</p>`}`}
      <//>
    <//>`;
}

const OFFSET_COLUMNS = [
  { name: "offset", title: "Offset", value: (one) => one.offset, cell: (one) => number(one.offset) },
  { name: "position", title: "Position", value: (one) => one.position, cell: (one) => number(one.position), align: "end" },
];
const TIME_COLUMNS = [
  { name: "time", title: "Timestamp", value: (one) => one.timestamp_ms, cell: (one) => time(one.timestamp_ms) },
  { name: "offset", title: "Offset", value: (one) => one.offset, cell: (one) => number(one.offset), align: "end" },
];

function Index({ path, broker }) {
  const found = usePages(path, { broker, limit: PAGE }, ({ next_entry: first }) => (first === null ? null : { first }));
  return html`
    <${Paged} state=${found} label="Next entries">${(pages) => {
      const offsets = pages.flatMap((page) => page.offsets);
      const times = pages.flatMap((page) => page.times);
      return html`
        <${Figures}><${Figure} label="Offset index" value=${number(offsets.length)} note="entries read" /><${Figure} label="Time index" value=${number(times.length)} note="entries read" /><//>
        <div class="side-by-side">
          <${Card} flush title="Offset to position"><${Table} label="Offset index" columns=${OFFSET_COLUMNS} rows=${offsets} keyOf=${(one) => String(one.offset)} empty="No entry is on disk yet." /><//>
          <${Card} flush title="Timestamp to offset"><${Table} label="Time index" columns=${TIME_COLUMNS} rows=${times} keyOf=${(one) => String(one.timestamp_ms)} empty="No entry is on disk yet." /><//>
        </div>`;
    }}<//>`;
}
