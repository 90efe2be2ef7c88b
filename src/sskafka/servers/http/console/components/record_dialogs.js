/** Dialogs of the messages page: produce a record, send one again, and the same on the command line. */
import { html, useId, useState } from "../lib/html.js";
import { send } from "../lib/api.js";
import { number } from "../lib/format.js";
import { Field } from "./basics.js";
import { Dialog, FormDialog } from "./dialog.js";
import { CopyButton } from "./payload.js";
import { tell } from "./toast.js";

const stored = (at) => tell(`Stored in ${at.topic}-${at.partition} at offset ${number(at.offset)}.`);
const recordsOf = (topic) => `topics/${encodeURIComponent(topic)}/records`;
const given = (kind, text) => (kind === "null" ? null : { [kind]: kind === "base64" ? text.replace(/\s+/g, "") : text });
const partitionOf = (text) => (text.trim() === "" ? null : Number(text));

/** Parse lines of `name: value`. A line without a colon is a header without a value. */
const parsedHeaders = (text) => text.split("\n").filter((line) => line.trim() !== "").map((line) => {
  const at = line.indexOf(":");
  return at < 0 ? { name: line.trim(), value: null } : { name: line.slice(0, at).trim(), value: { text: line.slice(at + 1).trim() } };
});

export function ProduceDialog({ topic, onClose, onStored }) {
  const [form, setForm] = useState({ keyKind: "text", key: "", valueKind: "text", value: "", headers: "", partition: "" });
  const id = useId();
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value });
  const isNumber = /^\d*$/.test(form.partition.trim());
  const submit = async () => {
    const at = await send("POST", recordsOf(topic), {
      key: given(form.key === "" ? "null" : form.keyKind, form.key),
      value: given(form.valueKind, form.value),
      headers: parsedHeaders(form.headers),
      partition: partitionOf(form.partition),
    });
    stored(at);
    onStored(at);
  };
  return html`
    <${FormDialog} title=${`Produce to ${topic}`} action="Produce" wide isReady=${isNumber} onSubmit=${submit} onClose=${onClose}>
      <div class="form-row">
        <${Field} id=${`${id}-key`} label="Key" help="Empty: the record has no key.">
          ${(props) => html`<input ...${props} class="mono" autocomplete="off" spellcheck=${false} value=${form.key} onInput=${set("key")} />`}
        <//>
        <${Field} id=${`${id}-key-kind`} label="Encoding">
          ${(props) => html`<select ...${props} value=${form.keyKind} onChange=${set("keyKind")}><option value="text">text</option><option value="base64">base64</option></select>`}
        <//>
        <${Field} id=${`${id}-partition`} label="Partition" error=${isNumber ? "" : "A number."} help="Empty: by the key.">
          ${(props) => html`<input ...${props} inputmode="numeric" value=${form.partition} onInput=${set("partition")} />`}
        <//>
      </div>
      <${Field} id=${`${id}-value-kind`} label="Value is">
        ${(props) => html`
          <select ...${props} value=${form.valueKind} onChange=${set("valueKind")}>
            <option value="text">text or JSON</option><option value="base64">bytes, as base64</option><option value="null">null: a tombstone, which deletes the key by compaction</option>
          </select>`}
      <//>
      ${form.valueKind !== "null" && html`
        <${Field} id=${`${id}-value`} label="Value">
          ${(props) => html`<textarea ...${props} rows="8" spellcheck=${false} value=${form.value} onInput=${set("value")}></textarea>`}
        <//>`}
      <${Field} id=${`${id}-headers`} label="Headers" help="One a line, as name: value.">
        ${(props) => html`<textarea ...${props} rows="2" spellcheck=${false} value=${form.headers} onInput=${set("headers")}></textarea>`}
      <//>
    <//>`;
}

export function CopyDialog({ topic, record, onClose, onStored }) {
  const [form, setForm] = useState({ topic, partition: "", keepsTimestamp: false });
  const id = useId();
  const isNumber = /^\d*$/.test(form.partition.trim());
  const submit = async () => {
    const path = `topics/${encodeURIComponent(topic)}/partitions/${record.partition}/records/${record.offset}/copies`;
    const at = await send("POST", path, { topic: form.topic.trim(), partition: partitionOf(form.partition), keep_timestamp: form.keepsTimestamp });
    stored(at);
    onStored(at);
  };
  return html`
    <${FormDialog} title="Send again" action="Send" isReady=${form.topic.trim() !== "" && isNumber} onSubmit=${submit} onClose=${onClose}>
      <p>The record at offset ${number(record.offset)} of ${topic}-${record.partition}, with the same key, value and headers.</p>
      <${Field} id=${`${id}-topic`} label="To topic">
        ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} value=${form.topic} onInput=${(event) => setForm({ ...form, topic: event.target.value })} />`}
      <//>
      <${Field} id=${`${id}-partition`} label="Partition" error=${isNumber ? "" : "A number."} help="Empty: by the key.">
        ${(props) => html`<input ...${props} inputmode="numeric" value=${form.partition} onInput=${(event) => setForm({ ...form, partition: event.target.value })} />`}
      <//>
      <label class="check"><input type="checkbox" checked=${form.keepsTimestamp} onChange=${(event) => setForm({ ...form, keepsTimestamp: event.target.checked })} /> Keep the timestamp</label>
    <//>`;
}

/** `commands`: [{name, text}]. */
export const CommandsDialog = ({ title, commands, onClose }) => html`
  <${Dialog} title=${title} onClose=${onClose} wide>
    <div class="dialog-body commands">
      ${commands.map((one) => html`
        <section key=${one.name} class="payload">
          <header><h3>${one.name}</h3><span class="actions"><${CopyButton} text=${one.text} /></span></header>
          <pre class="data" tabindex="0" aria-label=${one.name}>${one.text}</pre>
        </section>`)}
    </div>
  <//>`;
