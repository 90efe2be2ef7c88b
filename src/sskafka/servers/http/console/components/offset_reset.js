/** New offsets for a group: the plan of a dry run beside the button that executes it. */
import { send } from "../lib/api.js";
import { number, plural } from "../lib/format.js";
import { html, useId, useState } from "../lib/html.js";
import { Button, Card, Empty, Failure, Field } from "./basics.js";
import { TypedConfirmation } from "./dialog.js";
import { Table } from "./table.js";
import { tell } from "./toast.js";

const KINDS = [
  { name: "start", label: "the start of the log" }, { name: "end", label: "the end of the log" }, { name: "offset", label: "an offset" },
  { name: "time", label: "a time" }, { name: "shift", label: "so many records further or back" },
];

const COLUMNS = [
  { name: "partition", title: "Partition", value: (one) => `${one.topic} ${String(one.partition).padStart(9)}`, cell: (one) => `${one.topic}-${one.partition}`, wide: true },
  { name: "before", title: "Before", value: (one) => one.before, cell: (one) => (one.before === null ? "none" : number(one.before)), align: "end" },
  { name: "after", title: "After", value: (one) => one.after, cell: (one) => number(one.after), align: "end" },
  { name: "change", title: "Change", value: (one) => one.after - (one.before ?? 0), cell: (one) => signed(one), align: "end" },
];

const signed = ({ before, after }) => {
  if (before === null) return "";
  if (before === after) return "stays";
  return after > before ? `skips ${plural(after - before, "record")}` : `reads ${plural(before - after, "record")} again`;
};

/** The request that the form describes, or null while it is not complete. */
function wantedOf({ kind, offset, time, shift, topics }) {
  const named = topics.split(/[\s;]+/).filter(Boolean);
  const request = { topics: named.length ? named : null };
  if (kind === "shift") return /^-?\d{1,15}$/.test(shift) ? { ...request, shift_by: Number(shift) } : null;
  if (kind === "offset") return /^[+-]?\d{1,18}$/.test(offset) ? { ...request, to: offset } : null;
  if (kind !== "time") return { ...request, to: kind };
  const at = new Date(time).getTime();
  return Number.isNaN(at) ? null : { ...request, to: `@${at}` };
}

export function OffsetReset({ group, onDone }) {
  const [form, setForm] = useState({ kind: "start", offset: "", time: "", shift: "", topics: "" });
  const [plan, setPlan] = useState({ partitions: null, error: null, isLoading: false, request: null });
  const [isConfirming, setConfirming] = useState(false);
  const id = useId();
  const path = `groups/${encodeURIComponent(group.group_id)}/offsets`;
  const wanted = wantedOf(form);
  const isCurrent = plan.partitions !== null && JSON.stringify(plan.request) === JSON.stringify(wanted);
  const set = (name) => (event) => setForm({ ...form, [name]: event.target.value });
  const dryRun = async (event) => {
    event?.preventDefault();
    if (!wanted) return;
    setPlan({ partitions: null, error: null, isLoading: true, request: wanted });
    try {
      const { partitions } = await send("POST", path, wanted);
      setPlan({ partitions, error: null, isLoading: false, request: wanted });
    } catch (error) {
      setPlan({ partitions: null, error, isLoading: false, request: wanted });
    }
  };
  const execute = async () => {
    const { partitions } = await send("POST", path, { ...plan.request, execute: true });
    setConfirming(false);
    setPlan({ partitions: null, error: null, isLoading: false, request: null });
    tell(`The offsets of ${plural(partitions.length, "partition")} are reset.`);
    onDone();
  };
  return html`
    <div class="columns reset">
      <${Card} title="Where the group continues">
        ${group.members.length > 0 && html`<p class="note">The group has ${plural(group.members.length, "member")}. Offsets can be reset when they are stopped.</p>`}
        <form onSubmit=${dryRun}>
          <${Field} id=${`${id}-kind`} label="Continue at">
            ${(props) => html`<select ...${props} value=${form.kind} onChange=${set("kind")}>${KINDS.map((one) => html`<option key=${one.name} value=${one.name}>${one.label}</option>`)}</select>`}
          <//>
          ${form.kind === "offset" && html`<${Field} id=${`${id}-offset`} label="Offset" help="42, +10 after the start, -10 before the end">${(props) => html`<input ...${props} value=${form.offset} onInput=${set("offset")} />`}<//>`}
          ${form.kind === "time" && html`<${Field} id=${`${id}-time`} label="Time">${(props) => html`<input ...${props} type="datetime-local" step="1" value=${form.time} onInput=${set("time")} />`}<//>`}
          ${form.kind === "shift" && html`<${Field} id=${`${id}-shift`} label="Records" help="100 skips a hundred records, -100 reads a hundred again.">${(props) => html`<input ...${props} inputmode="numeric" value=${form.shift} onInput=${set("shift")} />`}<//>`}
          <${Field} id=${`${id}-topics`} label="Topics" help="orders, or orders:0,1 for some partitions, separated by spaces. Empty: everything that is committed.">
            ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} value=${form.topics} onInput=${set("topics")} />`}
          <//>
          <${Button} type="submit" disabled=${!wanted || plan.isLoading}>${plan.isLoading ? "Planning …" : "Dry run"}<//>
        </form>
      <//>
      <${Card} title="Plan" flush>
        ${plan.error && html`<${Failure} error=${plan.error} />`}
        ${plan.partitions === null && !plan.error && html`<${Empty}>A dry run shows here what would change.<//>`}
        ${plan.partitions !== null && html`
          <${Table} label="Plan" noun="partition" columns=${COLUMNS} rows=${plan.partitions} keyOf=${(one) => `${one.topic}-${one.partition}`} />
          <p class="more">
            ${!isCurrent && html`<span class="muted">The form has changed: run it dry again. </span>`}
            <${Button} kind="danger" disabled=${!isCurrent} onClick=${() => setConfirming(true)}>Execute<//>
          </p>`}
      <//>
    </div>
    ${isConfirming && html`
      <${TypedConfirmation} title="Reset offsets" word=${group.group_id} action="Reset offsets" onConfirm=${execute} onClose=${() => setConfirming(false)}>
        <p>The offsets of ${plural(plan.partitions.length, "partition")} are replaced. Consumers of the group skip records or process them again.</p>
      <//>`}`;
}
