/** The rebalances of a group: a picture with a lane for each member, and the list of events. */
import { useData } from "../lib/data.js";
import { duration, number, time } from "../lib/format.js";
import { html, useMemo } from "../lib/html.js";
import { Badge, Card, Empty, Loaded } from "./basics.js";
import { Table } from "./table.js";

const EVERY_MS = 3000;
const LANE_PX = 26;
const LABEL = 16; // per cent of the width
const LANES_MAX = 30;
const TONES = { joined: "good", left: "warning", "timed-out": "bad", fenced: "bad", "rebalance-started": "warning", "rebalance-completed": "accent" };

const who = (event) => event.instance_id || event.client_id || event.member_id;

const COLUMNS = [
  { name: "time", title: "Time", value: (event) => event.time_ms, cell: (event) => html`<span class="mono">${time(event.time_ms)}.${String(event.time_ms % 1000).padStart(3, "0")}</span>` },
  { name: "event", title: "Event", value: (event) => event.event, cell: (event) => html`<${Badge} tone=${TONES[event.event]}>${event.event}<//>` },
  { name: "generation", title: "Generation", value: (event) => event.generation, align: "end" },
  { name: "members", title: "Members", value: (event) => event.members, align: "end", hide: "phone" },
  { name: "took", title: "Took", value: (event) => event.duration_ms, cell: (event) => (event.duration_ms === null ? "" : duration(event.duration_ms)), align: "end" },
  { name: "who", title: "Who", value: (event) => who(event) },
  { name: "why", title: "Why", value: (event) => event.reason, cell: (event) => html`<span title=${event.reason}>${event.reason}</span>`, wide: true },
];

export function GroupTimeline({ id }) {
  const timeline = useData(`groups/${encodeURIComponent(id)}/timeline`, {}, EVERY_MS);
  return html`<${Loaded} state=${timeline}>${(data) => data.events.length === 0
    ? html`<${Card}><${Empty}>The coordinator has seen no event of this group since it loaded it.<//><//>`
    : html`
      <${Card} title="Timeline"><${Picture} events=${data.events} /><//>
      <${Card} flush title="Events">
        <${Table} label="Events" noun="event" columns=${COLUMNS} rows=${data.events} keyOf=${(event) => `${event.time_ms} ${event.event} ${event.member_id} ${event.generation}`} initialSort=${{ name: "time", descending: true }} />
      <//>`}
  <//>`;
}

/** Times as shares of the width, with some room at both ends. */
function scaleOf(events) {
  const first = events[0].time_ms;
  const last = Math.max(events.at(-1).time_ms, first + 1000);
  return (at) => LABEL + 2 + ((at - first) / (last - first)) * (96 - LABEL);
}

function lanesOf(events) {
  const lanes = new Map();
  for (const event of events) {
    if (!event.member_id && !event.client_id) continue;
    const name = event.member_id || event.client_id;
    if (!lanes.has(name)) lanes.set(name, { name: who(event), events: [] });
    lanes.get(name).events.push(event);
  }
  return [...lanes.values()].slice(-LANES_MAX);
}

function Picture({ events }) {
  const lanes = useMemo(() => lanesOf(events), [events]);
  const at = useMemo(() => scaleOf(events), [events]);
  const height = (lanes.length + 1) * LANE_PX + 24;
  const rebalances = events.filter((event) => event.event === "rebalance-completed");
  const percent = (share) => `${share}%`;
  return html`
    <div class="timeline-scroll" tabindex="0" role="region" aria-label="Picture of the timeline; the same events are listed below">
      <svg class="timeline" width="100%" height=${height} role="img" aria-label=${`${number(rebalances.length)} rebalances and ${number(lanes.length)} members`}>
        ${rebalances.map((event) => html`
          <rect key=${`r${event.time_ms}`} class="rebalance" x=${percent(at(event.time_ms - (event.duration_ms ?? 0)))} y="0" height=${height - 20}
            width=${percent(Math.max(0.3, at(event.time_ms) - at(event.time_ms - (event.duration_ms ?? 0))))}>
            <title>${`generation ${event.generation}, ${duration(event.duration_ms)}`}</title>
          </rect>`)}
        <text class="lane-name" x="0" y="17">rebalances</text>
        ${rebalances.map((event) => html`<text key=${`g${event.time_ms}`} class="generation" x=${percent(at(event.time_ms))} y="17" text-anchor="middle">${event.generation}</text>`)}
        ${lanes.map((lane, row) => html`<${Lane} key=${lane.name + row} lane=${lane} top=${(row + 1) * LANE_PX} at=${at} percent=${percent} />`)}
        <text class="axis" x=${percent(LABEL)} y=${height - 5}>${time(events[0].time_ms)}</text>
        <text class="axis" x="99%" y=${height - 5} text-anchor="end">${time(events.at(-1).time_ms)}</text>
      </svg>
    </div>
    <p class="legend">
      <span class="mark good"></span> joined <span class="mark warning"></span> left <span class="mark bad"></span> timed out or fenced
      <span class="band"></span> rebalance, with its generation
    </p>`;
}

const isEnd = (event) => ["left", "timed-out", "fenced"].includes(event.event);

/** The life of a member: a line from when it joined until it left, with its events as dots. */
function Lane({ lane, top, at, percent }) {
  const middle = top + LANE_PX / 2;
  const joined = lane.events.find((event) => event.event === "joined");
  const end = lane.events.findLast(isEnd);
  const name = lane.name.length > 22 ? `${lane.name.slice(0, 21)}…` : lane.name;
  return html`
    <text class="lane-name" x="0" y=${middle + 4}>${name}<title>${lane.name}</title></text>
    <line class="life" x1=${joined ? percent(at(joined.time_ms)) : percent(LABEL)} x2=${end && (!joined || end.time_ms >= joined.time_ms) ? percent(at(end.time_ms)) : "100%"} y1=${middle} y2=${middle} />
    ${lane.events.map((event, index) => html`
      <circle key=${index} class=${TONES[event.event] ?? "plain"} cx=${percent(at(event.time_ms))} cy=${middle} r="5">
        <title>${`${time(event.time_ms)} ${event.event}${event.reason ? `: ${event.reason}` : ""}`}</title>
      </circle>`)}`;
}
