/**
 * Modal dialogs. The browser's own <dialog> keeps the focus inside, closes on Escape and gives the focus back.
 */
import { html, useEffect, useId, useRef, useState } from "../lib/html.js";
import { Button, Field } from "./basics.js";
import { Icon } from "./icons.js";

/** A dialog that is open as long as it is rendered. `onClose` is called when the reader closes it. */
export function Dialog({ title, onClose, children, wide }) {
  const element = useRef(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`
    <dialog ref=${element} class=${wide ? "wide" : ""} aria-labelledby=${titleId} onCancel=${(event) => { event.preventDefault(); onClose(); }}>
      <header>
        <h2 id=${titleId}>${title}</h2>
        <button type="button" class="close" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>
      </header>
      ${children}
    </dialog>`;
}

/**
 * A dialog with a form. `onSubmit` does the change: while it runs the form is disabled, when it fails the dialog shows
 * the sentence of the error and stays open.
 */
export function FormDialog({ title, action, kind = "primary", isReady = true, onSubmit, onClose, children, wide }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    if (!isReady || isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose} wide=${wide}>
      <form onSubmit=${submit}>
        <div class="dialog-body">
          ${children}
          ${error && html`<p class="failure" role="alert"><${Icon} name="error" /> ${error.message}</p>`}
        </div>
        <footer>
          <${Button} onClick=${onClose}>Cancel<//>
          <${Button} type="submit" kind=${kind} disabled=${!isReady || isBusy}>${isBusy ? "Working …" : action}<//>
        </footer>
      </form>
    <//>`;
}

/** Ask the reader to type `word` before something that cannot be undone. `children` say what will happen. */
export function TypedConfirmation({ title, word, action, onConfirm, onClose, children }) {
  const [typed, setTyped] = useState("");
  const id = useId();
  return html`
    <${FormDialog} title=${title} action=${action} kind="danger" isReady=${typed === word} onSubmit=${onConfirm} onClose=${onClose}>
      ${children}
      <${Field} id=${id} label=${html`Type <strong class="word">${word}</strong> to confirm`}>
        ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}
      <//>
    <//>`;
}
