/** Transactions: open ones by age, and the producers of a partition. */
import { Badge, Button, Card, Empty, Field, Loaded, PageTitle, Tabs } from "../components/basics.js";
import { TypedConfirmation } from "../components/dialog.js";
import { Table } from "../components/table.js";
import { tell } from "../components/toast.js";
import { send } from "../lib/api.js";
import { useData } from "../lib/data.js";
import { ago, duration, number, plural, time } from "../lib/format.js";
import { html, useId, useMemo, useState } from "../lib/html.js";
import { replaceQuery } from "../lib/router.js";
import { useMayChange } from "../lib/session.js";

const EVERY_MS = 2000;
const LIMIT = 1000;
const TABS = [{ name: "transactions", title: "Transactional ids" }, { name: "producers", title: "Producers of a partition" }];
const TONES = { Ongoing: "accent", PrepareCommit: "warning", PrepareAbort: "warning", PrepareEpochFence: "warning", CompleteCommit: "good" };

export default function Transactions({ query }) {
  const chosen = query.tab === "producers" ? "producers" : "transactions";
  return html`
    <${PageTitle} title="Transactions" />
    <${Tabs} tabs=${TABS} chosen=${chosen} />
    ${chosen === "transactions" ? html`<${Ids} />` : html`<${Producers} query=${query} />`}`;
}

/** An open transaction that has used most of its timeout deserves a look. */
const ageTone = ({ open_for_ms: age, timeout_ms: timeout }) => (age !== null && timeout !== null && age > timeout * 0.8 ? "bad" : age !== null && age > 60_000 ? "warning" : undefined);

function Ids() {
  const [search, setSearch] = useState("");
  const [isOpenOnly, setOpenOnly] = useState(false);
  const [aborting, setAborting] = useState(null);
  const mayChange = useMayChange();
  const found = useData("transactions", { search, open: isOpenOnly || "", limit: LIMIT }, EVERY_MS);
  const columns = useMemo(() => [
    { name: "id", title: "Transactional id", value: (one) => one.transactional_id, wide: true },
    { name: "state", title: "State", value: (one) => one.state, cell: (one) => html`<${Badge} tone=${TONES[one.state]}>${one.state}<//>` },
    { name: "age", title: "Open for", value: (one) => one.open_for_ms, cell: (one) => (one.open_for_ms === null ? html`<span class="muted">–</span>` : html`<${Badge} tone=${ageTone(one)}>${duration(one.open_for_ms)}<//>`), align: "end" },
    { name: "timeout", title: "Timeout", value: (one) => one.timeout_ms, cell: (one) => duration(one.timeout_ms), align: "end", hide: "phone" },
    { name: "partitions", title: "Partitions", value: (one) => one.partitions.length, cell: (one) => html`<span title=${one.partitions.join(", ")}>${number(one.partitions.length)}</span>`, align: "end" },
    { name: "producer", title: "Producer", value: (one) => one.producer_id, align: "end", hide: "phone" },
    { name: "coordinator", title: "Coordinator", value: (one) => one.coordinator, cell: (one) => `broker ${one.coordinator}`, align: "end", hide: "phone" },
    ...(mayChange ? [{ name: "actions", title: "", cell: (one) => one.open_for_ms !== null && html`<${Button} kind="quiet" aria-label=${`Abort the transaction of ${one.transactional_id}`} onClick=${() => setAborting(one)}>Abort<//>`, align: "end" }] : []),
  ], [mayChange]);
  const abort = async () => {
    const { fenced_below_epoch: epoch } = await send("POST", `transactions/${encodeURIComponent(aborting.transactional_id)}/abort`);
    tell(`The transaction of ${aborting.transactional_id} is aborted; producers below epoch ${epoch} are fenced.`);
    setAborting(null);
    found.reload();
  };
  return html`
    <section class="card flush">
      <${Loaded} state=${{ ...found, data: found.data ?? (search ? { transactions: [], left_out: 0 } : null) }}>${(data) => html`
        <${Table} label="Transactional ids" noun="id" columns=${columns} rows=${data.transactions} keyOf=${(one) => one.transactional_id} textOf=${(one) => one.transactional_id}
          search=${search} onSearch=${setSearch} initialSort=${{ name: "age", descending: true }}
          tools=${html`<label class="check"><input type="checkbox" checked=${isOpenOnly} onChange=${(event) => setOpenOnly(event.target.checked)} /> Open only</label>`}
          empty=${isOpenOnly ? "No transaction is open." : "There are no transactional ids."} />
        ${data.left_out > 0 && html`<p class="note">${plural(data.left_out, "more id")}. Search to see them.</p>`}`}
      <//>
    </section>
    ${aborting && html`
      <${TypedConfirmation} title="Abort transaction" word=${aborting.transactional_id} action="Abort" onConfirm=${abort} onClose=${() => setAborting(null)}>
        <p>Its records in ${plural(aborting.partitions.length, "partition")} are discarded, and its producer is fenced: it can no longer write with this id.</p>
        ${aborting.partitions.length > 0 && html`<p class="mono muted">${aborting.partitions.slice(0, 20).join(", ")}${aborting.partitions.length > 20 && " …"}</p>`}
      <//>`}`;
}

function Producers({ query }) {
  const id = useId();
  const topics = useData("topics", { limit: LIMIT });
  const topic = query.topic ?? "";
  const partition = /^\d{1,9}$/.test(query.partition ?? "") ? query.partition : "0";
  const count = topics.data?.topics.find((one) => one.name === topic)?.partitions ?? 0;
  return html`
    <${Card}>
      <div class="form-row">
        <${Field} id=${`${id}-topic`} label="Topic">
          ${(props) => html`<select ...${props} value=${topic} onChange=${(event) => replaceQuery({ topic: event.target.value, partition: "" })}>
            <option value="">choose one</option>
            ${(topics.data?.topics ?? []).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
          </select>`}
        <//>
        <${Field} id=${`${id}-partition`} label="Partition">
          ${(props) => html`<select ...${props} value=${partition} onChange=${(event) => replaceQuery({ partition: event.target.value })}>${Array.from({ length: count }, (_, at) => html`<option key=${at} value=${String(at)}>${at}</option>`)}</select>`}
        <//>
      </div>
    <//>
    ${topic === "" ? html`<${Card}><${Empty}>Choose a partition to see the producers that its leader knows.<//><//>` : html`<${PartitionProducers} key=${`${topic}-${partition}`} topic=${topic} partition=${partition} />`}`;
}

function PartitionProducers({ topic, partition }) {
  const path = `topics/${encodeURIComponent(topic)}/partitions/${partition}/producers`;
  const found = useData(path, {}, EVERY_MS);
  const mayChange = useMayChange();
  const [aborting, setAborting] = useState(null);
  const columns = useMemo(() => [
    { name: "id", title: "Producer id", value: (one) => one.producer_id },
    { name: "epoch", title: "Epoch", value: (one) => one.producer_epoch, align: "end" },
    { name: "sequence", title: "Last sequence", value: (one) => one.last_sequence, cell: (one) => number(one.last_sequence), align: "end" },
    { name: "at", title: "Last write", value: (one) => one.last_timestamp_ms, cell: (one) => html`<span title=${time(one.last_timestamp_ms)}>${ago(one.last_timestamp_ms)}</span>`, align: "end" },
    { name: "start", title: "Transaction since", value: (one) => one.transaction_start_offset, cell: (one) => (one.transaction_start_offset === null ? html`<span class="muted">none</span>` : `offset ${number(one.transaction_start_offset)}`), align: "end" },
    ...(mayChange ? [{ name: "actions", title: "", cell: (one) => one.transaction_start_offset !== null && html`<${Button} kind="quiet" onClick=${() => setAborting(one)}>Abort if hanging<//>`, align: "end" }] : []),
  ], [mayChange]);
  const abort = async () => {
    await send("POST", `${path}/abort`, { start_offset: aborting.transaction_start_offset });
    tell(`The transaction of producer ${aborting.producer_id} in ${topic}-${partition} is aborted.`);
    setAborting(null);
    found.reload();
  };
  return html`
    <${Card} flush title=${`Producers of ${topic}-${partition}`}>
      <${Loaded} state=${found}>${(data) => html`
        <${Table} label="Producers" noun="producer" columns=${columns} rows=${data.producers} keyOf=${(one) => String(one.producer_id)} initialSort=${{ name: "at", descending: true }}
          empty="Its leader knows no producer with an id: none has written lately, or they are not idempotent." />`}
      <//>
    <//>
    ${aborting && html`
      <${TypedConfirmation} title="Abort hanging transaction" word=${String(aborting.producer_id)} action="Abort" onConfirm=${abort} onClose=${() => setAborting(null)}>
        <p>Only for a transaction that no coordinator knows, which is not in the list of transactional ids. Abort others there: this one writes a marker into ${topic}-${partition} alone.</p>
      <//>`}`;
}
