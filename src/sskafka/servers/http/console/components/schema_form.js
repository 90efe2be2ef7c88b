/** Schemas of keys and values: those of the broker, and those that the reader gives for a topic. */
import { useData } from "../lib/data.js";
import { bytes } from "../lib/format.js";
import { html, useId } from "../lib/html.js";
import { Button, Field } from "./basics.js";
import { tellError } from "./toast.js";

const CHARACTERS_MAX = 16_384;
const PARTS = [{ name: "value", label: "values" }, { name: "key", label: "keys" }];
const ENCODINGS = { avro: "Avro", protobuf: "Protobuf" };

export function SchemaForm({ topic, schemas, onChange }) {
  const own = useData(`topics/${encodeURIComponent(topic)}/schemas`).data;
  const change = (part, text) => onChange({ ...schemas, [`${part}_schema`]: text });
  const isUsed = PARTS.some(({ name }) => schemas[`${name}_schema`] || own?.[name]);
  return html`
    <details class="schemas" open=${false}>
      <summary>Avro and Protobuf schemas${isUsed ? " (in use)" : ""}</summary>
      ${PARTS.map(({ name, label }) => html`<${Part} key=${name} label=${label} own=${own?.[name]} text=${schemas[`${name}_schema`]} onChange=${(text) => change(name, text)} />`)}
      <p class="muted">What you give is kept in this browser for this topic, and is used before a schema of the broker (<code>console.schema.dir</code>).
        Records with and without the prefix of a schema registry are read.</p>
    </details>`;
}

function Part({ label, own, text, onChange }) {
  const id = useId();
  const given = protobufOf(text);
  return html`
    <fieldset>
      <legend>Schema of ${label}</legend>
      ${own && !text && html`<p class="note">${ownText(own)}</p>`}
      ${given
        ? html`<${Given} id=${id} given=${given} onChange=${onChange} />`
        : html`
          <${Field} id=${`${id}-avro`} label=${`Avro schema of ${label}`}>
            ${(props) => html`<textarea ...${props} rows="4" spellcheck=${false} maxlength=${CHARACTERS_MAX} value=${text} onChange=${(event) => onChange(event.target.value.trim())}></textarea>`}
          <//>
          ${!text && html`
            <${Field} id=${`${id}-set`} label=${`Protobuf descriptor set of ${label}`} help="protoc --include_imports --descriptor_set_out=orders.desc orders.proto">
              ${(props) => html`<input ...${props} type="file" accept=".desc,.pb,.protoset,.bin" onChange=${(event) => take(event.target.files[0], onChange)} />`}
            <//>`}`}
    </fieldset>`;
}

const ownText = (own) => own.problem ?? `This broker has a schema: ${ENCODINGS[own.encoding] ?? own.encoding}${own.name && `, ${own.name}`}.`;

function Given({ id, given, onChange }) {
  const rename = (event) => onChange(JSON.stringify({ ...given, message: event.target.value.trim() }));
  return html`
    <p class="note">A Protobuf descriptor set of ${bytes(Math.floor((given.protobuf.length * 3) / 4))}. <${Button} kind="quiet" onClick=${() => onChange("")}>Remove<//></p>
    <${Field} id=${`${id}-message`} label="Message" help="Such as shop.Order; empty: the first message of the file.">
      ${(props) => html`<input ...${props} class="mono" spellcheck=${false} autocapitalize="off" value=${given.message ?? ""} onChange=${rename} />`}
    <//>`;
}

/** Return {protobuf, message} of a schema, or null for others. */
function protobufOf(text) {
  try {
    const schema = JSON.parse(text);
    return typeof schema?.protobuf === "string" ? schema : null;
  } catch {
    return null;
  }
}

async function take(file, onChange) {
  if (!file) return;
  const data = new Uint8Array(await file.arrayBuffer());
  const text = JSON.stringify({ protobuf: btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join("")), message: "" });
  if (text.length > CHARACTERS_MAX) tellError(new Error(`The descriptor set has ${bytes(data.length)}; more than 12 kB fit only into console.schema.dir on the broker.`));
  else onChange(text);
}
