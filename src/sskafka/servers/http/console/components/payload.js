/** Keys, values and headers of records. */
import { bytes } from "../lib/format.js";
import { classes, html, useMemo, useState } from "../lib/html.js";
import { bytesOf, hexDump, indented, marked } from "../lib/odd_text.js";
import { wireText } from "../lib/protobuf_wire.js";
import { Button } from "./basics.js";

const PREVIEW_CHARACTERS = 240;
const SHOWN_CHARACTERS = 200_000;
const TREE_ENCODINGS = ["json", "avro", "protobuf"];
const WIRE = "Protobuf fields";
const WIRE_CHARACTERS_MAX = 100_000; // of base64

/** One line of a payload, for lists. */
export function Preview({ payload }) {
  if (payload.encoding === "null") return html`<span class="muted">null</span>`;
  if (payload.encoding === "base64") {
    const shown = [...bytesOf(payload.data.slice(0, 64))].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    return html`<span class="payload-line"><span class="kind">bytes</span>${shown}${payload.size_bytes > 48 && " …"}</span>`;
  }
  if (payload.data === "") return html`<span class="muted">empty</span>`;
  const isCut = payload.is_truncated || payload.data.length > PREVIEW_CHARACTERS;
  return html`<bdi class="payload-line" dir="ltr">${marked(payload.data.slice(0, PREVIEW_CHARACTERS).replace(/\s+/g, " "))}${isCut && " …"}</bdi>`;
}

/** The forms in which a payload can be shown, the best one first. */
const formsOf = (payload) => {
  if (TREE_ENCODINGS.includes(payload.encoding)) return ["Indented", "As stored"];
  if (payload.encoding !== "base64") return ["Text"];
  return wireOf(payload) === null ? ["Hex", "Base64"] : ["Hex", WIRE, "Base64"];
};

const wireOf = (payload) => (payload.is_truncated || payload.data.length > WIRE_CHARACTERS_MAX ? null : wireText(bytesOf(payload.data)));

function textOf(payload, form) {
  if (form === "Indented") return indented(payload.data);
  if (form === WIRE) return wireOf(payload);
  return form === "Hex" ? hexDump(bytesOf(payload.data)) : payload.data;
}

/** A whole payload: indented JSON, text, or bytes in hexadecimal. `actions` stand at the right of its heading. */
export function PayloadView({ title, payload, actions }) {
  const forms = useMemo(() => formsOf(payload), [payload]);
  const [chosen, setChosen] = useState("");
  const form = forms.includes(chosen) ? chosen : forms[0];
  const text = payload.encoding === "null" ? "" : textOf(payload, form);
  const isLong = text.length > SHOWN_CHARACTERS;
  return html`
    <section class="payload">
      <header>
        <h3>${title}</h3>
        <span class="muted">${payload.encoding === "null" ? "null" : `${payload.encoding === "base64" ? "bytes" : payload.encoding}, ${bytes(payload.size_bytes)}`}</span>
        ${forms.length > 1 && forms.map((one) => html`<button type="button" key=${one} class="chip" aria-pressed=${String(one === form)} onClick=${() => setChosen(one)}>${one}</button>`)}
        <span class="actions">${actions}</span>
      </header>
      ${payload.problem && html`<p class="note">The schema was not used: ${marked(payload.problem)}</p>`}
      ${payload.encoding !== "null" && html`<pre class=${classes("data", payload.encoding)} dir="ltr" tabindex="0" aria-label=${title}>${marked(text.slice(0, SHOWN_CHARACTERS))}</pre>`}
      ${isLong && html`<p class="note">Only the first ${SHOWN_CHARACTERS.toLocaleString("en")} characters are shown. Download it to see all.</p>`}
    </section>`;
}

/** Copy text to the clipboard. Browsers allow that on secure pages only; elsewhere the reader selects the text. */
export function CopyButton({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} kind="quiet" onClick=${copy}>${isDone ? "Copied" : label}<//>`;
}
