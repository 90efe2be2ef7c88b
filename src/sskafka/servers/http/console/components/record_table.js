/** Records as a list whose rows open. */
import { bytes, number, time } from "../lib/format.js";
import { get } from "../lib/api.js";
import { html, useEffect, useState } from "../lib/html.js";
import { Button, Failure, Loading } from "./basics.js";
import { PayloadView, Preview } from "./payload.js";
import { marked } from "../lib/odd_text.js";

const COLUMNS = 6;
const keyOf = (record) => `${record.partition}:${record.offset}`;

/** `actionsOf(record)` are the buttons of an open record; `schemas` are the parameters of the schemas. */
export function RecordTable({ topic, records, schemas, actionsOf, label }) {
  const [open, setOpen] = useState(null);
  useEffect(() => setOpen(null), [topic]);
  return html`
    <div class="table-scroll" tabindex="0" role="region" aria-label=${label}>
      <table class="records">
        <thead><tr>
          <th scope="col">Time</th><th scope="col" class="end">Partition</th><th scope="col" class="end">Offset</th>
          <th scope="col">Key</th><th scope="col">Value</th><th scope="col" class="end hide-phone">Size</th>
        </tr></thead>
        <tbody onKeyDown=${moveBetweenRecords}>
          ${records.map((record) => html`<${RecordRow} key=${keyOf(record)} topic=${topic} record=${record} schemas=${schemas} actionsOf=${actionsOf}
            isOpen=${open === keyOf(record)} onToggle=${() => setOpen(open === keyOf(record) ? null : keyOf(record))} />`)}
        </tbody>
      </table>
    </div>`;
}

function RecordRow({ topic, record, schemas, actionsOf, isOpen, onToggle }) {
  return html`
    <tr class=${isOpen ? "open" : ""} onClick=${(event) => event.target.closest("button, a") || getSelection().toString() || onToggle()}>
      <td class="mono">
        <button type="button" class="row-toggle" aria-expanded=${String(isOpen)} onClick=${onToggle}
          title=${record.timestamp_type}>${time(record.timestamp_ms)}.${String(Math.max(0, record.timestamp_ms) % 1000).padStart(3, "0")}</button>
      </td>
      <td class="end">${record.partition}</td>
      <td class="end">${number(record.offset)}</td>
      <td class="mono key"><${Preview} payload=${record.key} /></td>
      <td class="mono value"><${Preview} payload=${record.value} /></td>
      <td class="end hide-phone">${bytes(record.size_bytes)}</td>
    </tr>
    ${isOpen && html`<tr class="details"><td colspan=${COLUMNS}><${RecordDetails} topic=${topic} record=${record} schemas=${schemas} actions=${actionsOf(record)} /></td></tr>`}`;
}

/** An open record. A value that was cut is read whole when the reader asks for it. */
function RecordDetails({ topic, record, schemas, actions }) {
  const path = `topics/${encodeURIComponent(topic)}/partitions/${record.partition}/records/${record.offset}`;
  const [whole, setWhole] = useState({ record: null, error: null, isLoading: false });
  const shown = whole.record ?? record;
  const isCut = shown.key.is_truncated || shown.value.is_truncated || shown.headers.some((one) => one.value.is_truncated);
  const load = () => {
    setWhole({ record: null, error: null, isLoading: true });
    get(path, schemas).then(
      (found) => setWhole({ record: found, error: null, isLoading: false }),
      (error) => setWhole({ record: null, error, isLoading: false }),
    );
  };
  return html`
    <div class="record">
      <div class="record-actions actions">${actions}</div>
      ${isCut && !whole.isLoading && html`<p class="note">Only the beginning is shown. <${Button} kind="quiet" onClick=${load}>Show all ${bytes(shown.size_bytes)}<//></p>`}
      ${whole.isLoading && html`<${Loading} />`}
      ${whole.error && html`<${Failure} error=${whole.error} />`}
      <${PayloadView} title="Value" payload=${shown.value} actions=${shown.value.encoding !== "null" && html`<a class="button quiet" href=${`api/v1/${path}/value`} download>Download<//>`} />
      ${shown.key.encoding !== "null" && html`<${PayloadView} title="Key" payload=${shown.key} />`}
      ${shown.headers.length > 0 && html`
        <section class="payload">
          <header><h3>Headers</h3><span class="muted">${shown.headers.length}${shown.headers_left_out > 0 && ` of ${shown.headers.length + shown.headers_left_out}`}</span></header>
          <dl class="headers">
            ${shown.headers.map((one, at) => html`<div key=${at}><dt class="mono"><bdi dir="ltr">${marked(one.name)}</bdi></dt><dd class="mono"><${Preview} payload=${one.value} /></dd></div>`)}
          </dl>
        </section>`}
      <p class="muted">${record.timestamp_type}, leader epoch ${record.leader_epoch}</p>
    </div>`;
}

function moveBetweenRecords(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  if (!step || !event.target.matches(".row-toggle")) return;
  let row = event.target.closest("tr")[step];
  while (row && !row.querySelector(".row-toggle")) row = row[step];
  if (row) {
    event.preventDefault();
    row.querySelector(".row-toggle").focus();
  }
}
