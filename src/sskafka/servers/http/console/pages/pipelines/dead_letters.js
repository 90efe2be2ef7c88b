/** Dead letters of a pipeline: by reason, the record beside the error, and a redrive with a dry run and progress. */
import { Button, Card, Empty, Failure, Loaded, Meter } from "../../components/basics.js";
import { PayloadView } from "../../components/payload.js";
import { tell } from "../../components/toast.js";
import { send } from "../../lib/api.js";
import { useData } from "../../lib/data.js";
import { number, plural, time } from "../../lib/format.js";
import { html, useEffect, useRef, useState } from "../../lib/html.js";
import { marked } from "../../lib/odd_text.js";
import { link } from "../../lib/router.js";
import { useMayChange } from "../../lib/session.js";

const EVERY_MS = 5000;
const STEP = 100;
const lettersIn = (targets) => targets.reduce((sum, target) => sum + target.letters, 0);

export function DeadLetters({ topic }) {
  const path = `topics/${encodeURIComponent(topic)}/dead-letters`;
  const found = useData(path, {}, EVERY_MS);
  const mayChange = useMayChange();
  const messages = html`<a class="button quiet" href=${link("messages", [topic])}>Messages</a>`;
  return html`
    <${Card} title="Dead letters that wait" actions=${messages}>
      <${Loaded} state=${found}>${(data) => html`
        ${data.waiting === 0 ? html`<${Empty}>None waits: all were sent back, or there was none.<//>` : html`
          <ul class="reasons">${data.reasons.map((reason) => html`<li key=${reason.error}><b>${number(reason.letters)}</b> <span>${marked(reason.error || "no reason")}</span></li>`)}</ul>
          ${data.looked_at < data.waiting && html`<p class="note">Counted in the first ${plural(data.looked_at, "letter")} of ${number(data.waiting)}.</p>`}
          ${mayChange && html`<${Redrive} path=${path} onDone=${found.reload} />`}
          <ul class="letters">${data.letters.map((letter) => html`<${Letter} key=${`${letter.record.partition}-${letter.record.offset}`} letter=${letter} />`)}</ul>`}`}
      <//>
    <//>`;
}

function Letter({ letter }) {
  const [isOpen, setOpen] = useState(false);
  const from = `${letter.topic}-${letter.partition} at ${letter.offset}`;
  return html`
    <li>
      <button type="button" class="row-toggle" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>${marked(from)}</button>
      <span class="muted"> ${time(letter.record.timestamp_ms)} </span>${!isOpen && html`<span>${marked(letter.error.slice(0, 160))}</span>`}
      ${isOpen && html`
        <div class="side-by-side">
          <section class="payload"><header><h3>Error</h3></header><pre class="data" tabindex="0" aria-label="Error">${marked(letter.error)}</pre></section>
          <div><${PayloadView} title="Key" payload=${letter.record.key} /><${PayloadView} title="Value" payload=${letter.record.value} /></div>
        </div>`}
    </li>`;
}

/** The server sends a hundred letters back at a time, so that the page can show progress, and stop. */
function Redrive({ path, onDone }) {
  const [plan, setPlan] = useState(null);
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const isStopped = useRef(false);
  useEffect(() => () => { isStopped.current = true; }, []);
  const dryRun = async () => {
    setError(null);
    await send("POST", `${path}/redrive`, { limit: STEP }).then(setPlan, setError);
  };
  const execute = async () => {
    const total = plan.left;
    let sent = 0;
    isStopped.current = false;
    setError(null);
    setProgress({ sent, total });
    try {
      for (let left = total; left > 0 && !isStopped.current;) {
        const done = await send("POST", `${path}/redrive`, { limit: STEP, execute: true });
        const count = lettersIn(done.targets);
        if (count === 0) break;
        sent += count;
        left = done.left;
        setProgress({ sent, total });
      }
      tell(`${plural(sent, "dead letter")} sent back.`);
      setPlan(null);
      onDone();
    } catch (failure) {
      setError(failure);
    }
    setProgress(null);
  };
  return html`
    ${error && html`<${Failure} error=${error} />`}
    ${plan && html`<p class="note">${plural(plan.left, "letter")} would be sent back. The next ones: ${plan.targets.map((target) => `${number(target.letters)} to ${target.topic}`).join(", ")}. The pipeline reads them again.</p>`}
    ${progress && html`<p role="status"><${Meter} share=${progress.total ? progress.sent / progress.total : 0} label=${`${progress.sent} of ${progress.total}`} /> ${number(progress.sent)} of ${number(progress.total)} sent back</p>`}
    <p class="actions">
      ${progress ? html`<${Button} onClick=${() => { isStopped.current = true; }}>Stop<//>` : html`<${Button} onClick=${dryRun}>Dry run<//>`}
      ${plan && !progress && html`<${Button} kind="primary" onClick=${execute}>Send back<//>`}
    </p>`;
}
