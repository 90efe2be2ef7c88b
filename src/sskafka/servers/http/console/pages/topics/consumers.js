/** Who reads a topic: groups that commit offsets, and clients that fetch, whether or not they commit. */
import { Badge, Card, Loaded } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { duration, number } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { link } from "../../lib/router.js";
import { PAGES } from "../../pages.js";

const REFRESH_MS = 5000;
const GROUPS = "groups";

const GROUP_COLUMNS = [
  { name: "group", title: "Group", wide: true, value: (group) => group.group_id, cell: (group) => group.group_id },
  { name: "state", title: "State", value: (group) => group.state, cell: (group) => html`<${Badge} tone=${group.state === "Stable" ? "good" : ""}>${group.state}<//>` },
  { name: "kind", title: "Protocol", value: (group) => group.kind, hide: "phone" },
  { name: "partitions", title: "Partitions", align: "end", value: (group) => group.partitions, cell: (group) => number(group.partitions) },
  { name: "lag", title: "Lag", align: "end", value: (group) => group.lag, cell: (group) => number(group.lag) },
];

const READER_COLUMNS = [
  { name: "client", title: "Client id", wide: true, value: (reader) => reader.client_id, cell: (reader) => html`<span class="mono">${reader.client_id}</span>` },
  { name: "partitions", title: "Partitions", align: "end", value: (reader) => reader.partitions, cell: (reader) => number(reader.partitions) },
  { name: "lag", title: "Not fetched yet", align: "end", value: (reader) => reader.fetch_lag, cell: (reader) => number(reader.fetch_lag) },
  { name: "ago", title: "Last fetch", align: "end", value: (reader) => reader.seconds_ago, cell: (reader) => `${duration(reader.seconds_ago * 1000)} ago` },
];

export function Consumers({ name }) {
  const consumers = useData(`topics/${encodeURIComponent(name)}/consumers`, {}, REFRESH_MS);
  const hasGroups = PAGES.some((page) => page.name === GROUPS);
  return html`
    <${Loaded} state=${consumers}>${(data) => html`
      <${Card} title="Groups that commit offsets of this topic" flush>
        ${!data.is_complete && html`<p class="muted note">The cluster has many groups; only the first ones were asked.</p>`}
        <${Table} label="Groups" noun="group" columns=${GROUP_COLUMNS} rows=${data.groups} keyOf=${(group) => group.group_id}
          linkOf=${hasGroups ? (group) => link(GROUPS, [group.group_id]) : undefined} empty="No group has committed offsets of this topic." />
      <//>
      <${Card} title="Clients that fetch, whether or not they commit" flush>
        <${Table} label="Readers" noun="client" columns=${READER_COLUMNS} rows=${data.readers} keyOf=${(reader) => reader.client_id}
          empty="No client has fetched from this topic lately." />
      <//>`}<//>`;
}
