/** Messages: the records of a topic by partition, offset and time, a search through them, and a live tail. */
import { Badge, Button, Card, Empty, Failure, Field, Meter, PageTitle } from "../components/basics.js";
import { CommandsDialog, CopyDialog, ProduceDialog } from "../components/record_dialogs.js";
import { RecordTable } from "../components/record_table.js";
import { SchemaForm } from "../components/schema_form.js";
import { TopicChooser } from "../components/topic_chooser.js";
import { address, get } from "../lib/api.js";
import { recordCommands, viewCommands } from "../lib/commands.js";
import { useData } from "../lib/data.js";
import { bytes, duration, number, plural } from "../lib/format.js";
import { html, useEffect, useId, useRef, useState } from "../lib/html.js";
import { useLive } from "../lib/live.js";
import { TAIL_RECORDS_MAX, useRecordSearch } from "../lib/record_search.js";
import { link, replaceQuery } from "../lib/router.js";
import { useMayChange } from "../lib/session.js";

const PAGE_RECORDS = 50;
const SEARCH = { max_records: 10_000_000, max_seconds: 600, max_matches: 500 };
const TAIL = { follow: true, max_records: 10_000_000, max_seconds: 3600 };
const ENDS = {
  end: "The search reached the end of the log.",
  max_matches: `The search stopped after ${SEARCH.max_matches} matches.`,
  max_records: "The search stopped after ten million records.",
  max_seconds: "The search stopped after its time was up.",
  stopped: "Stopped.",
};

export default function Messages({ parts, query }) {
  if (parts.length === 0) return html`<${TopicChooser} title="Messages" page="messages" />`;
  return html`<${TopicMessages} key=${parts[0]} topic=${parts[0]} query=${query} />`;
}

/** What the page shows, from the address. */
const viewOf = (query) => ({
  order: query.order === "oldest" ? "oldest" : "newest",
  from: query.from ?? "",
  partitions: /^\d+(,\d+)*$/.test(query.partitions ?? "") ? query.partitions : "",
  filter: query.filter ?? "",
  committed: query.committed === "true",
});

function TopicMessages({ topic, query }) {
  const view = viewOf(query);
  const [schemas, setSchemas] = useSchemas(topic);
  const [dialog, setDialog] = useState(null);
  const mayChange = useMayChange();
  const search = useRecordSearch();
  const [isSearching, setSearching] = useState(false);
  const parameters = { partitions: view.partitions, from: view.from, committed: view.committed || "", ...schemas };
  const pages = usePages(topic, { ...parameters, order: view.order });
  const bootstrap = useLive("health")?.brokers.find((one) => !one.is_fenced)?.address ?? "localhost:9092";
  const topicData = useData(`topics/${encodeURIComponent(topic)}`);
  const close = () => setDialog(null);

  const range = view.order === "newest" ? { ...parameters, from: "", until: view.from } : parameters;
  const startSearch = () => {
    setSearching(true);
    search.start(topic, { ...range, filter: view.filter, ...SEARCH });
  };
  const startTail = () => {
    setSearching(true);
    search.start(topic, { ...parameters, from: "", filter: view.filter, ...TAIL });
  };
  const browse = () => {
    search.clear();
    setSearching(false);
  };
  const actionsOf = (record) => html`
    ${mayChange && html`<${Button} icon="exchange" onClick=${() => setDialog({ kind: "copy", record })}>Send again<//>`}
    <${Button} onClick=${() => setDialog({ kind: "commands", title: `Offset ${number(record.offset)} of ${topic}-${record.partition}`, commands: recordCommands(bootstrap, topic, record) })}>Copy as command<//>`;

  return html`
    <${PageTitle} title=${topic} back=${{ href: link("messages"), label: "Messages" }}>
      ${mayChange && html`<${Button} icon="plus" kind="primary" onClick=${() => setDialog({ kind: "produce" })}>Produce<//>`}
      <${Button} onClick=${() => setDialog({ kind: "commands", title: "The same on the command line", commands: viewCommands(bootstrap, topic, { ...view, isTail: search.isTail, limit: PAGE_RECORDS }) })}>Copy as command<//>
      <a class="button" download href=${address(`topics/${encodeURIComponent(topic)}/records/download`, { ...range, filter: view.filter })}>Download</a>
    <//>
    <${Card}>
      <${Position} view=${view} partitions=${topicData.data?.partitions.length ?? 0} onChange=${browse} />
      <${FilterForm} view=${view} search=${search} onSearch=${startSearch} onTail=${startTail} onChange=${(filter) => replaceQuery({ filter })} />
      <${SchemaForm} topic=${topic} schemas=${schemas} onChange=${setSchemas} />
    <//>
    ${isSearching
      ? html`<${Found} topic=${topic} search=${search} schemas=${schemas} actionsOf=${actionsOf} onBrowse=${browse} />`
      : html`<${Browsed} topic=${topic} pages=${pages} view=${view} schemas=${schemas} actionsOf=${actionsOf} />`}
    ${dialog?.kind === "produce" && html`<${ProduceDialog} topic=${topic} onClose=${close} onStored=${() => { close(); pages.reload(); }} />`}
    ${dialog?.kind === "copy" && html`<${CopyDialog} topic=${topic} record=${dialog.record} onClose=${close} onStored=${() => { close(); pages.reload(); }} />`}
    ${dialog?.kind === "commands" && html`<${CommandsDialog} title=${dialog.title} commands=${dialog.commands} onClose=${close} />`}`;
}

/** Pages of records, one after the other. */
function usePages(topic, params) {
  const [state, setState] = useState({ records: [], last: null, error: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  const running = useRef(null);
  const key = `${topic} ${JSON.stringify(params)}`;
  const load = (cursor, before) => {
    running.current?.abort();
    const abort = (running.current = new AbortController());
    setState((last) => ({ ...last, isLoading: true, error: null, records: before, last: cursor ? last.last : null }));
    get(`topics/${encodeURIComponent(topic)}/records`, { ...params, cursor, limit: PAGE_RECORDS }, { signal: abort.signal }).then(
      (page) => setState({ records: [...before, ...page.records], last: page, error: null, isLoading: false }),
      (error) => error.name !== "AbortError" && setState((last) => ({ ...last, error, isLoading: false })),
    );
  };
  useEffect(() => {
    load("", []);
    return () => running.current?.abort();
  }, [key, turn]);
  return { ...state, more: () => load(state.last.next_cursor, state.records), reload: () => setTurn((count) => count + 1) };
}

function Browsed({ topic, pages, view, schemas, actionsOf }) {
  if (pages.error) return html`<${Failure} error=${pages.error} />`;
  const { records, last, isLoading } = pages;
  const count = last?.partitions.reduce((sum, one) => sum + one.end_offset - one.log_start_offset, 0);
  return html`
    <${Card} flush>
      <div class="table-tools">
        <p class="count" role="status">${last ? `${plural(records.length, "record")} of about ${number(count)}, ${view.order} first` : "Loading …"}</p>
        ${last?.unavailable.length > 0 && html`<${Badge} tone="bad">no leader: ${last.unavailable.join(", ")}<//>`}
        <div class="actions"><${Button} onClick=${pages.reload} disabled=${isLoading}>Refresh<//></div>
      </div>
      ${records.length > 0 && html`<${RecordTable} label=${`Records of ${topic}`} topic=${topic} records=${records} schemas=${schemas} actionsOf=${actionsOf} />`}
      ${last && records.length === 0 && !isLoading && html`<${Empty}>${last.next_cursor ? "No record there." : "There are no records in this direction."}<//>`}
      ${last?.next_cursor && html`<p class="more"><${Button} disabled=${isLoading} onClick=${pages.more}>${isLoading ? "Loading …" : view.order === "newest" ? "Older records" : "Newer records"}<//></p>`}
    <//>`;
}

function Found({ topic, search, schemas, actionsOf, onBrowse }) {
  const { records, progress, isRunning, isTail, end, error } = search;
  return html`
    <${Card} flush>
      <div class="table-tools">
        ${isRunning && html`<${Badge} tone="accent">${isTail ? "live" : "searching"}<//>`}
        <p class="count" role="status">${progress ? progressText(progress, records.length) : "Starting …"}</p>
        ${!isTail && progress && html`<${Meter} share=${progress.looked_at / Math.max(1, progress.looked_at + progress.left)} label="Part of the log that was searched" />`}
        <div class="actions">
          ${isRunning && html`<${Button} kind="danger" onClick=${() => search.stop()}>Stop<//>`}
          ${!isRunning && html`<${Button} onClick=${onBrowse}>Back to all records<//>`}
        </div>
      </div>
      ${error && html`<${Failure} error=${error} />`}
      ${records.length > 0 && html`<${RecordTable} label="Matches" topic=${topic} records=${records} schemas=${schemas} actionsOf=${actionsOf} />`}
      ${records.length === 0 && !error && html`<${Empty}>${isRunning ? (isTail ? "Waiting for new records …" : "No match so far …") : "No record matches."}<//>`}
      ${!isRunning && end && html`<p class="note end-note">${isTail && end !== "stopped" ? "The live tail has ended. Start it again to continue." : ENDS[end]}</p>`}
    <//>`;
}

const progressText = (progress, shown) =>
  `${plural(progress.looked_at, "record")} looked at, ${number(progress.matched)} matched` +
  (progress.not_shown ? ` (${number(progress.not_shown)} not shown: too many a second)` : "") +
  (progress.cut ? `, ${number(progress.cut)} too long to match to the end` : "") +
  `, ${bytes(progress.read_bytes)}, ${duration(progress.elapsed_ms)}` + (shown === TAIL_RECORDS_MAX ? `, the newest ${shown} are kept` : "");

const KINDS = [
  { name: "", label: "newest first" }, { name: "start", label: "oldest first" }, { name: "offset", label: "from an offset" },
  { name: "time", label: "from a time" }, { name: "before", label: "before a time" },
];

function kindOf({ order, from }) {
  if (from.startsWith("@")) return order === "newest" ? "before" : "time";
  if (from !== "" && from !== "start" && from !== "end") return "offset";
  return order === "oldest" ? "start" : "";
}

/** Where in the log: partition, and a start. Changes are applied at once; the page is the address. */
function Position({ view, partitions, onChange }) {
  const id = useId();
  const [kind, setKind] = useState(kindOf(view));
  const change = (changes) => {
    replaceQuery(changes);
    onChange();
  };
  const choose = (name) => {
    setKind(name);
    if (name === "" || name === "start") change({ order: name === "" ? "" : "oldest", from: "" });
  };
  const toTime = (event) => {
    const at = new Date(event.target.value);
    if (!Number.isNaN(at.getTime())) change({ order: kind === "time" ? "oldest" : "", from: `@${at.getTime()}` });
  };
  return html`
    <div class="form-row">
      <${Field} id=${`${id}-kind`} label="Show">
        ${(props) => html`<select ...${props} value=${kind} onChange=${(event) => choose(event.target.value)}>${KINDS.map((one) => html`<option key=${one.name} value=${one.name}>${one.label}</option>`)}</select>`}
      <//>
      ${kind === "offset" && html`
        <${Field} id=${`${id}-offset`} label="Offset" help="42, +10 after the start, -10 before the end">
          ${(props) => html`<input ...${props} value=${view.from.startsWith("@") ? "" : view.from} onChange=${(event) => /^[+-]?\d{1,18}$/.test(event.target.value.trim()) && change({ order: "oldest", from: event.target.value.trim() })} />`}
        <//>`}
      ${(kind === "time" || kind === "before") && html`
        <${Field} id=${`${id}-time`} label="Time">
          ${(props) => html`<input ...${props} type="datetime-local" step="1" value=${localTime(view.from)} onChange=${toTime} />`}
        <//>`}
      <${Field} id=${`${id}-partitions`} label="Partition">
        ${(props) => html`
          <select ...${props} value=${view.partitions} onChange=${(event) => change({ partitions: event.target.value })}>
            <option value="">all</option>
            ${view.partitions.includes(",") && html`<option value=${view.partitions}>${view.partitions}</option>`}
            ${Array.from({ length: partitions }, (_, at) => html`<option key=${at} value=${String(at)}>${at}</option>`)}
          </select>`}
      <//>
      <label class="check"><input type="checkbox" checked=${view.committed} onChange=${(event) => change({ committed: event.target.checked ? "true" : "" })} /> Committed only</label>
    </div>`;
}

/** A time such as "@1700000000000" for an input of the reader's time zone. */
function localTime(from) {
  const at = new Date(Number(from.slice(1)));
  if (!from.startsWith("@") || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const HELP = 'key == "a" and value.user.id > 5 and headers.trace contains "x"; also !=, <, >=, matches "regex", or, not, partition, offset, timestamp, size';

function FilterForm({ view, search, onSearch, onTail, onChange }) {
  const [text, setText] = useState(view.filter);
  const [problem, setProblem] = useState("");
  const id = useId();
  useEffect(() => {
    if (text.trim() === "") {
      setProblem("");
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get("filters/check", { filter: text }, { signal: abort.signal }).then((checked) => setProblem(checked.problem ?? ""), () => {});
    }, 250);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  const change = (event) => {
    setText(event.target.value);
    onChange(event.target.value);
  };
  const submit = (event) => {
    event.preventDefault();
    if (text.trim() !== "" && !problem) onSearch();
  };
  return html`
    <form class="filter" onSubmit=${submit}>
      <${Field} id=${id} label="Filter" error=${problem} help=${HELP}>
        ${(props) => html`<input ...${props} class="mono" autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength="4096" placeholder='value.user.id > 5' value=${text} onInput=${change} />`}
      <//>
      <div class="actions">
        <${Button} type="submit" kind="primary" icon="search" disabled=${text.trim() === "" || Boolean(problem) || (search.isRunning && !search.isTail)}>Search<//>
        <${Button} icon="pulse" disabled=${Boolean(problem) || (search.isRunning && search.isTail)} onClick=${onTail}>Live tail<//>
      </div>
    </form>`;
}

/** The schemas of a topic that the reader has given, kept in the browser. */
function useSchemas(topic) {
  const name = `sskafka.schemas.${topic}`;
  const [schemas, setSchemas] = useState(() => {
    try {
      return { key_schema: "", value_schema: "", ...JSON.parse(localStorage.getItem(name) ?? "{}") };
    } catch {
      return { key_schema: "", value_schema: "" };
    }
  });
  return [schemas, (next) => {
    setSchemas(next);
    localStorage.setItem(name, JSON.stringify(next));
  }];
}
