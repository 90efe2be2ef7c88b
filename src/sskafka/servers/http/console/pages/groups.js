/** Groups: members and what they are assigned, lag with its history, rebalances, and new offsets. */
import { Badge, Button, Card, Empty, Figure, Figures, Loaded, Meter, PageTitle, Tabs } from "../components/basics.js";
import { Assignment } from "../components/assignment.js";
import { Chart } from "../components/chart.js";
import { GroupTimeline } from "../components/group_timeline.js";
import { OffsetReset } from "../components/offset_reset.js";
import { Table } from "../components/table.js";
import { TypedConfirmation } from "../components/dialog.js";
import { tell } from "../components/toast.js";
import { send } from "../lib/api.js";
import { useData } from "../lib/data.js";
import { duration, number, plural } from "../lib/format.js";
import { html, useEffect, useMemo, useState } from "../lib/html.js";
import { lagHistory } from "../lib/lag_history.js";
import { useStore } from "../lib/store.js";
import { go, link } from "../lib/router.js";
import { useMayChange } from "../lib/session.js";

const LIMIT = 1000;
const EVERY_MS = 3000;
const TONES = { Stable: "good", Empty: undefined, Dead: "bad", PreparingRebalance: "warning", CompletingRebalance: "warning", Assigning: "warning", Reconciling: "warning" };

export const GroupState = ({ state }) => html`<${Badge} tone=${TONES[state]}>${state}<//>`;

export default function Groups({ parts, query }) {
  return parts.length === 0 ? html`<${GroupList} />` : html`<${Group} key=${parts[0]} id=${parts[0]} tab=${query.tab} />`;
}

const GROUP_COLUMNS = [
  { name: "group_id", title: "Group", value: (group) => group.group_id, wide: true },
  { name: "state", title: "State", value: (group) => group.state, cell: (group) => html`<${GroupState} state=${group.state} />` },
  { name: "kind", title: "Protocol", value: (group) => group.kind, hide: "phone" },
  { name: "coordinator", title: "Coordinator", value: (group) => group.coordinator, cell: (group) => `broker ${group.coordinator}`, align: "end", hide: "phone" },
];

function GroupList() {
  const [search, setSearch] = useState("");
  const groups = useData("groups", { search, limit: LIMIT }, EVERY_MS);
  return html`
    <${PageTitle} title="Groups" />
    <section class="card flush">
      <${Loaded} state=${{ ...groups, data: groups.data ?? (search ? { groups: [] } : null) }}>
        ${(data) => html`<${Table} label="Groups" noun="group" columns=${GROUP_COLUMNS} rows=${data.groups} keyOf=${(group) => group.group_id} textOf=${(group) => group.group_id}
          search=${search} onSearch=${setSearch} linkOf=${(group) => link("groups", [group.group_id])}
          empty="There are no groups. A consumer with a group.id makes one." />`}
      <//>
    </section>`;
}

const TABS = [
  { name: "lag", title: "Lag" }, { name: "assignment", title: "Assignment" }, { name: "timeline", title: "Rebalances" }, { name: "offsets", title: "Reset offsets" },
];

function Group({ id, tab }) {
  const group = useData(`groups/${encodeURIComponent(id)}`, {}, EVERY_MS);
  const mayChange = useMayChange();
  const [isDeleting, setDeleting] = useState(false);
  const tabs = mayChange ? TABS : TABS.slice(0, -1);
  const chosen = tabs.some((one) => one.name === tab) ? tab : "lag";
  useEffect(() => {
    if (group.data) lagHistory(id).add(group.data);
  }, [group.data]);
  const remove = async () => {
    await send("DELETE", `groups/${encodeURIComponent(id)}`);
    tell(`Group ${id} is deleted.`);
    go("groups");
  };
  return html`
    <${PageTitle} title=${id} back=${{ href: link("groups"), label: "Groups" }}>
      ${mayChange && group.data && html`<${Button} kind="danger" icon="trash" onClick=${() => setDeleting(true)}>Delete<//>`}
    <//>
    <${Loaded} state=${group}>${(data) => html`
      ${group.error && html`<p class="note">${group.error.message}</p>`}
      <${Figures}>
        <${Figure} label="State" value=${data.state} tone=${TONES[data.state]} />
        <${Figure} label="Members" value=${number(data.members.length)} />
        <${Figure} label="Lag" value=${number(data.lag)} note="records" tone=${data.lag > 0 ? undefined : "good"} />
        <${Figure} label="Lag in time" value=${duration(lagMs(data))} note="unread" />
        <${Figure} label="Protocol" value=${data.kind} note=${data.assignor} />
        <${Figure} label="Coordinator" value=${`broker ${data.coordinator}`} />
      <//>
      <${Tabs} tabs=${tabs} chosen=${chosen} />
      ${chosen === "lag" && html`<${Lag} group=${data} />`}
      ${chosen === "assignment" && html`<${Assignment} group=${data} />`}
      ${chosen === "timeline" && html`<${GroupTimeline} id=${id} />`}
      ${chosen === "offsets" && html`<${OffsetReset} group=${data} onDone=${group.reload} />`}
      ${isDeleting && html`
        <${TypedConfirmation} title="Delete group" word=${id} action="Delete" onConfirm=${remove} onClose=${() => setDeleting(false)}>
          <p>The committed offsets of the group are deleted. Consumers that join it later start where <code>auto.offset.reset</code> says.
            ${data.members.length > 0 && html` <strong>The group has ${plural(data.members.length, "member")}: stop them first.</strong>`}</p>
        <//>`}`}
    <//>`;
}

const lagMs = (group) => Math.max(0, ...group.partitions.map((one) => one.lag_ms ?? 0));

const COMMITTED = (value) => (value === null ? html`<span class="muted">none</span>` : number(value));

function Lag({ group }) {
  const history = useStore(lagHistory(group.group_id).samples);
  const most = Math.max(1, ...group.partitions.map((one) => one.lag ?? 0));
  const owners = useMemo(() => new Map(group.members.flatMap((member) => member.partitions.map((one) => [one, member.client_id]))), [group]);
  const columns = useMemo(() => [
    { name: "partition", title: "Partition", value: (one) => `${one.topic} ${String(one.partition).padStart(9)}`, cell: (one) => html`<a href=${link("messages", [one.topic], { partitions: one.partition, from: one.committed ?? "", order: "oldest" })}>${one.topic}-${one.partition}</a>`, wide: true },
    { name: "committed", title: "Committed", value: (one) => one.committed, cell: (one) => COMMITTED(one.committed), align: "end" },
    { name: "end", title: "Log end", value: (one) => one.log_end_offset, cell: (one) => number(one.log_end_offset), align: "end", hide: "phone" },
    { name: "lag", title: "Lag", value: (one) => one.lag, cell: (one) => html`${number(one.lag)} <${Meter} share=${(one.lag ?? 0) / most} label=${`Lag ${number(one.lag)}`} />`, align: "end" },
    { name: "lag_ms", title: "In time", value: (one) => one.lag_ms, cell: (one) => duration(one.lag_ms), align: "end" },
    { name: "member", title: "Member", value: (one) => owners.get(`${one.topic}-${one.partition}`) ?? "", cell: (one) => owners.get(`${one.topic}-${one.partition}`) ?? html`<span class="muted">nobody</span>`, hide: "phone" },
  ], [group]);
  return html`
    <div class="columns">
      <${Card} title="Lag in records"><${Chart} label="Lag in records" series=${[{ label: "Lag" }]} data=${[history.times, history.records]} format=${number} /><//>
      <${Card} title="Lag in time"><${Chart} label="Lag in time" series=${[{ label: "Oldest unread record" }]} data=${[history.times, history.ages]} format=${duration} /><//>
    </div>
    <${Card} flush title="Partitions">
      ${group.partitions.length === 0
        ? html`<${Empty}>The group has committed nothing and is assigned nothing.<//>`
        : html`<${Table} label="Partitions" noun="partition" columns=${columns} rows=${group.partitions} keyOf=${(one) => `${one.topic}-${one.partition}`} initialSort=${{ name: "lag", descending: true }} />`}
    <//>`;
}
