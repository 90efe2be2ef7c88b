/** The log directory that a tester of the Kafka challenge has prepared for this broker. */
import { Badge, Card, Figure, Figures, Loaded } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { bytes, number, plural } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { link } from "../../lib/router.js";

const EVERY_MS = 3000;
const range = (one) => (one.first_offset === null ? "–" : `${number(one.first_offset)} – ${number(one.last_offset)}`);

const COLUMNS = [
  { name: "partition", title: "Partition", value: (one) => `${one.topic} ${String(one.partition).padStart(9)}`, cell: (one) => html`<a href=${link("log", [one.topic, String(one.partition)])}>${one.topic}-${one.partition}</a>`, wide: true },
  { name: "id", title: "Topic id", value: (one) => one.topic_id, cell: (one) => html`<code>${one.topic_id ?? "–"}</code>`, hide: "phone" },
  { name: "offsets", title: "Offsets", value: (one) => one.last_offset ?? -1, cell: range, align: "end" },
  { name: "batches", title: "Batches", value: (one) => one.batches, cell: (one) => number(one.batches), align: "end" },
  { name: "size", title: "Size", value: (one) => one.size_bytes, cell: (one) => bytes(one.size_bytes), align: "end" },
  { name: "files", title: "Files", value: (one) => one.files.length, cell: (one) => html`<span title=${one.files.join(", ")}>${number(one.files.length)}</span>${one.problem && html` <${Badge} tone="bad">unreadable<//>`}`, align: "end", hide: "phone" },
];

export function Challenge() {
  const challenge = useData("challenge", {}, EVERY_MS);
  return html`
    <${Loaded} state=${challenge}>${(data) => html`
      <${Figures}>
        <${Figure} label="Metadata log" value=${data.metadata ? range(data.metadata) : "none"} note="offsets" />
        <${Figure} label="Partitions" value=${number(data.partitions.length + data.left_out)} />
        <${Figure} label="Records" value=${number(data.partitions.reduce((sum, one) => sum + one.records, 0))} />
      <//>
      <${Card} flush title="Partitions of the challenge">
        <p class="note mono">${data.directories.join(", ")}</p>
        <${Table} label="Partitions of the challenge" noun="partition" columns=${COLUMNS} rows=${data.partitions} keyOf=${(one) => `${one.topic}-${one.partition}`} empty="The tester has prepared no topic." />
        ${data.left_out > 0 && html`<p class="note">${plural(data.left_out, "partition")} not shown.</p>`}
      <//>`}
    <//>`;
}
