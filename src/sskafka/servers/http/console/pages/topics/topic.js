/** One topic: figures and rates, its partitions, who reads it, its settings, and what can be changed. */
import { Badge, Button, Card, Failure, Field, Figure, Figures, Loaded, PageTitle, Tabs } from "../../components/basics.js";
import { Chart } from "../../components/chart.js";
import { FormDialog, TypedConfirmation } from "../../components/dialog.js";
import { tell } from "../../components/toast.js";
import { send } from "../../lib/api.js";
import { useData } from "../../lib/data.js";
import { bytes, bytesPerSecond, number, perSecond } from "../../lib/format.js";
import { html, useEffect, useMemo, useState } from "../../lib/html.js";
import { merged } from "../../lib/point_history.js";
import { rate } from "../../lib/rates.js";
import { go, link } from "../../lib/router.js";
import { useMayChange } from "../../lib/session.js";
import { PAGES } from "../../pages.js";
import { Consumers } from "./consumers.js";
import { Partitions } from "./partitions.js";
import { Settings } from "./settings.js";

const REFRESH_MS = 4000;
const LOAD_MS = 2000;
const POINTS_MAX = 450;
const GAP_S = 15;
const TABS = [{ name: "partitions", title: "Partitions" }, { name: "consumers", title: "Consumers" }, { name: "settings", title: "Settings" }];
const SERIES = [{ label: "in" }, { label: "out" }];
const MESSAGES = "messages";

export function TopicPage({ name, query }) {
  const topic = useData(`topics/${encodeURIComponent(name)}`, {}, REFRESH_MS);
  const points = useLoad(name);
  const mayChange = useMayChange();
  const [dialog, setDialog] = useState("");
  const tab = TABS.some((one) => one.name === query.tab) ? query.tab : TABS[0].name;
  const close = () => setDialog("");
  const hasMessages = PAGES.some((page) => page.name === MESSAGES);

  return html`
    <${PageTitle} title=${name} back=${{ href: link("topics"), label: "Topics" }}>
      ${hasMessages && html`<a class="button" href=${link(MESSAGES, [name])}>Messages</a>`}
      ${mayChange && html`
        <${Button} icon="plus" onClick=${() => setDialog("partitions")}>Add partitions<//>
        <${Button} kind="danger" icon="trash" onClick=${() => setDialog("delete")}>Delete<//>`}
    <//>
    ${topic.error && topic.data && html`<${Failure} error=${topic.error} />`}
    <${Loaded} state=${topic}>${(data) => html`
      <${Summary} topic=${data} points=${points} />
      <${Tabs} tabs=${TABS} chosen=${tab} />
      ${tab === "partitions" && html`<${Partitions} topic=${data} />`}
      ${tab === "consumers" && html`<${Consumers} name=${name} />`}
      ${tab === "settings" && html`<${Settings} name=${name} mayChange=${mayChange} onChanged=${topic.reload} />`}
      ${dialog === "partitions" && html`<${AddPartitions} topic=${data} onClose=${close} onAdded=${topic.reload} />`}
      ${dialog === "delete" && html`<${DeleteTopic} topic=${data} onClose=${close} />`}`}<//>`;
}

function Summary({ topic, points }) {
  const now = points.at(-1);
  const data = useMemo(() => [points.map((one) => one.time_s), points.map((one) => one.in_rate), points.map((one) => one.out_rate)], [points]);
  const records = topic.partitions.reduce((sum, one) => sum + Math.max(0, (one.high_watermark ?? 0) - (one.log_start_offset ?? 0)), 0);
  const replication = Math.max(0, ...topic.partitions.map((one) => one.replicas.length));
  return html`
    <p class="muted">Topic id <code>${topic.topic_id}</code>${topic.is_internal && html` <${Badge}>internal<//>`}</p>
    <${Figures}>
      <${Figure} label="Partitions" value=${number(topic.partitions.length)} note=${`of ${replication} replicas`} />
      <${Figure} label="Offsets in the log" value=${number(records)} />
      <${Figure} label="Size, all replicas" value=${bytes(now?.log_bytes)} />
      <${Figure} label="Records in" value=${perSecond(now?.messages_rate)} />
      <${Figure} label="In" value=${bytesPerSecond(now?.in_rate)} />
      <${Figure} label="Out" value=${bytesPerSecond(now?.out_rate)} />
    <//>
    <${Card} title="Throughput"><${Chart} label="Throughput of the topic" series=${SERIES} data=${data} format=${bytesPerSecond} isBinary height=${140} /><//>`;
}

/** {points, newest} of each topic: kept while other pages are shown. */
const histories = new Map();

/** Points of the topic's traffic: what the broker has kept, then samples of this page. */
function useLoad(name) {
  const path = encodeURIComponent(name);
  const load = useData(`topics/${path}/load`, {}, LOAD_MS).data;
  const kept = useData(`history/topics/${path}`).data;
  const [history, setHistory] = useState(histories.get(name) ?? { points: [], newest: null });
  const change = (next) => setHistory((before) => {
    const after = next(before);
    histories.set(name, after);
    return after;
  });
  useEffect(() => {
    if (kept) change(({ points, newest }) => ({ newest, points: merged(kept.points.map(keptPoint), points, isGap).slice(-POINTS_MAX) }));
  }, [kept]);
  useEffect(() => {
    if (load) change(({ points, newest }) => ({ newest: load, points: [...points, ownPoint(newest, load)].slice(-POINTS_MAX) }));
  }, [load]);
  return history.points;
}

const isGap = (point) => point.in_rate === null;

const keptPoint = (one) => ({
  time_s: one.time_ms / 1000, log_bytes: one.log_bytes, messages_rate: one.messages_in, in_rate: one.bytes_in, out_rate: one.bytes_out,
});

/** Rates since the counters before; none after a long pause, which the broker's points fill. */
function ownPoint(before, load) {
  const seconds = before ? (load.time_ms - before.time_ms) / 1000 : 0;
  const since = (counter) => (before && seconds < GAP_S ? rate(before[counter], load[counter], seconds) : null);
  return {
    time_s: load.time_ms / 1000, log_bytes: load.log_bytes,
    messages_rate: since("messages_in"), in_rate: since("bytes_in"), out_rate: since("bytes_out"),
  };
}

function AddPartitions({ topic, onClose, onAdded }) {
  const before = topic.partitions.length;
  const [count, setCount] = useState(String(before + 1));
  const add = async () => {
    await send("POST", `topics/${encodeURIComponent(topic.name)}/partitions`, { count: Number(count) });
    tell(`Topic ${topic.name} has ${count} partitions now.`);
    onClose();
    onAdded();
  };
  return html`
    <${FormDialog} title=${`Add partitions to ${topic.name}`} action="Add" isReady=${Number(count) > before} onSubmit=${add} onClose=${onClose}>
      <p>The topic has ${number(before)} partitions. Partitions cannot be removed again, and records with the same key may go to another partition than before.</p>
      <${Field} id="partition-count" label="Partitions afterwards">
        ${(props) => html`<input ...${props} type="number" min=${before + 1} max="10000" value=${count} onInput=${(event) => setCount(event.target.value)} />`}
      <//>
    <//>`;
}

function DeleteTopic({ topic, onClose }) {
  const remove = async () => {
    await send("DELETE", `topics/${encodeURIComponent(topic.name)}`);
    tell(`Topic ${topic.name} is deleted.`);
    go("topics");
  };
  return html`
    <${TypedConfirmation} title=${`Delete ${topic.name}`} word=${topic.name} action="Delete the topic" onConfirm=${remove} onClose=${onClose}>
      <p>All records of the ${number(topic.partitions.length)} partitions are lost, on every broker. Nobody can undo this.</p>
    <//>`;
}
