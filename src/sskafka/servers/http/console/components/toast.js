/** Short messages at the edge of the page: the outcome of a change, or why it failed. */
import { classes, html } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";
import { Icon } from "./icons.js";

const SHOWN_MS = 6000;
const SHOWN_MAX = 4;
const shown = store([]);
let last = 0;

function add(tone, text) {
  const id = (last += 1);
  shown.set([...shown.get(), { id, tone, text }].slice(-SHOWN_MAX));
  if (tone === "good") setTimeout(() => remove(id), SHOWN_MS);
}

const remove = (id) => shown.set(shown.get().filter((one) => one.id !== id));

/** Say that something was done. */
export const tell = (text) => add("good", text);

/** Show the sentence of an error until the reader closes it. */
export const tellError = (error) => add("bad", error.message);

export function Toasts() {
  const messages = useStore(shown);
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${messages.map((one) => html`
        <div key=${one.id} class=${classes("toast", one.tone)}>
          <${Icon} name=${one.tone === "good" ? "check" : "error"} />
          <p>${one.text}</p>
          <button type="button" class="close" aria-label="Close this message" onClick=${() => remove(one.id)}><${Icon} name="close" size=${14} /></button>
        </div>`)}
    </div>`;
}
