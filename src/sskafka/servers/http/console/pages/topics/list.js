/** The list of topics, which stays fast with 10,000 of them. */
import { Badge, Button, Card, Failure, Loading, PageTitle } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { get } from "../../lib/api.js";
import { bytes, bytesPerSecond, number, perSecond } from "../../lib/format.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../../lib/html.js";
import { go, link, replaceQuery } from "../../lib/router.js";
import { useMayChange } from "../../lib/session.js";
import { useTopics } from "../../lib/topics.js";
import { CreateTopic } from "./create.js";

const CONFIGS_AT_ONCE = 100;
const CONFIGS_PAUSE_MS = 150;

export function TopicList({ query }) {
  const { topics, isWhole, error, reload } = useTopics();
  const [configs, lookAt] = useOwnConfigs();
  const mayChange = useMayChange();
  const [isCreating, setCreating] = useState(false);
  const showsInternal = query.internal === "1";
  const rows = useMemo(() => (showsInternal ? topics : topics.filter((topic) => !topic.is_internal)), [topics, showsInternal]);
  const columns = useMemo(() => columnsWith(configs), [configs]);
  const tools = html`
    <label class="check"><input type="checkbox" checked=${showsInternal} onChange=${(event) => replaceQuery({ internal: event.target.checked ? "1" : "" })} /> internal topics</label>`;

  return html`
    <${PageTitle} title="Topics">
      ${mayChange && html`<${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>Create a topic<//>`}
    <//>
    ${error && html`<${Failure} error=${error} />`}
    ${topics.length === 0 && !isWhole && !error ? html`<${Loading} />` : html`
      <${Card} flush>
        <${Table} label="Topics" noun="topic" columns=${columns} rows=${rows} tools=${tools} keyOf=${(topic) => topic.name}
          linkOf=${(topic) => link("topics", [topic.name])} textOf=${(topic) => topic.name}
          search=${query.search ?? ""} onSearch=${(search) => replaceQuery({ search })} onVisible=${lookAt} />
      <//>`}
    ${isCreating && html`<${CreateTopic} onClose=${() => setCreating(false)} onCreated=${(name) => { reload(); go("topics", [name]); }} />`}`;
}

const columnsWith = (configs) => [
  { name: "name", title: "Topic", wide: true, value: (topic) => topic.name, cell: (topic) => topic.name },
  { name: "state", title: "State", value: (topic) => topic.offline * 1e6 + topic.under_replicated, cell: (topic) => html`<${State} topic=${topic} />` },
  { name: "partitions", title: "Partitions", align: "end", value: (topic) => topic.partitions, cell: (topic) => number(topic.partitions) },
  { name: "replication", title: "Replicas", align: "end", value: (topic) => topic.replication_factor, hide: "phone" },
  { name: "size", title: "Size", align: "end", value: (topic) => topic.log_bytes, cell: (topic) => bytes(topic.log_bytes) },
  { name: "records", title: "Records in", align: "end", value: (topic) => topic.messages_rate, cell: (topic) => perSecond(topic.messages_rate), hide: "phone" },
  { name: "in", title: "In", align: "end", value: (topic) => topic.in_rate, cell: (topic) => bytesPerSecond(topic.in_rate), hide: "phone" },
  { name: "out", title: "Out", align: "end", value: (topic) => topic.out_rate, cell: (topic) => bytesPerSecond(topic.out_rate), hide: "phone" },
  { name: "configs", title: "Own settings", cell: (topic) => html`<${OwnConfigs} configs=${configs.get(topic.name)} />`, hide: "phone" },
];

function State({ topic }) {
  if (topic.offline > 0) return html`<${Badge} tone="bad">${number(topic.offline)} offline<//>`;
  if (topic.under_replicated > 0) return html`<${Badge} tone="warning">${number(topic.under_replicated)} under-replicated<//>`;
  return html`<${Badge} tone="good">healthy<//>${topic.is_internal && html` <${Badge}>internal<//>`}`;
}

function OwnConfigs({ configs }) {
  if (!configs?.length) return configs ? html`<span class="muted">none</span>` : "";
  const text = configs.map((one) => `${one.name}=${one.value ?? "(secret)"}`);
  return html`<span class="own-configs" title=${text.join("\n")}>${text[0]}${text.length > 1 && html` <${Badge}>+${text.length - 1}<//>`}</span>`;
}

/** The settings of the topics in view: they are read when a row comes into view, not for all topics. */
function useOwnConfigs() {
  const [configs, setConfigs] = useState(new Map());
  const wanted = useRef([]);
  const asked = useRef(new Set());
  const timer = useRef(0);
  const read = async () => {
    const names = wanted.current.filter((name) => !asked.current.has(name)).slice(0, CONFIGS_AT_ONCE);
    if (names.length === 0) return;
    names.forEach((name) => asked.current.add(name));
    try {
      const answer = await get(`configs/topics?${new URLSearchParams(names.map((name) => ["name", name]))}`);
      setConfigs((known) => new Map([...known, ...answer.topics.map((one) => [one.topic, one.configs])]));
    } catch {
      names.forEach((name) => asked.current.delete(name)); // asked again when the rows change
    }
  };
  const lookAt = useCallback((rows) => {
    wanted.current = rows.map((topic) => topic.name);
    clearTimeout(timer.current);
    timer.current = setTimeout(read, CONFIGS_PAUSE_MS);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return [configs, lookAt];
}
