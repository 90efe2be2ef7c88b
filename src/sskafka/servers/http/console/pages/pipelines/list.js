/** All pipelines that have published events. */
import { Badge, Loaded, PageTitle } from "../../components/basics.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { ago, number, perSecond, time } from "../../lib/format.js";
import { html } from "../../lib/html.js";
import { link } from "../../lib/router.js";

const EVERY_MS = 2000;
const TONES = { running: "good", starting: "accent", stopping: "warning", failed: "bad", lost: "bad" };

/** What a run does, or how it ended. */
export const RunState = ({ run }) => html`<${Badge} tone=${TONES[run.state]} title=${run.error ?? undefined}>${run.state}<//>`;

const COLUMNS = [
  { name: "name", title: "Pipeline", value: (one) => one.name, wide: true },
  { name: "state", title: "State", value: (one) => one.state, cell: (one) => html`<${RunState} run=${one} />` },
  { name: "in", title: "Rows in", value: (one) => one.in_per_s, cell: (one) => (one.is_running ? perSecond(one.in_per_s) : "–"), align: "end" },
  { name: "out", title: "Rows out", value: (one) => one.out_per_s, cell: (one) => (one.is_running ? perSecond(one.out_per_s) : "–"), align: "end", hide: "phone" },
  { name: "lag", title: "Lag", value: (one) => one.lag, cell: (one) => number(one.lag), align: "end" },
  { name: "dead", title: "Dead letters", value: (one) => one.dead_letters, cell: (one) => (one.dead_letters ? html`<${Badge} tone="warning">${number(one.dead_letters)}<//>` : "0"), align: "end", hide: "phone" },
  { name: "runs", title: "Runs", value: (one) => one.runs, cell: (one) => number(one.runs), align: "end", hide: "phone" },
  { name: "at", title: "Last event", value: (one) => one.last_event_ms, cell: (one) => html`<span title=${time(one.last_event_ms)}>${ago(one.last_event_ms)}</span>`, align: "end", hide: "phone" },
];

export function PipelineList() {
  const found = useData("pipelines", {}, EVERY_MS);
  return html`
    <${PageTitle} title="Pipelines" />
    <section class="card flush">
      <${Loaded} state=${found}>${(data) => html`
        <${Table} label="Pipelines" noun="pipeline" columns=${COLUMNS} rows=${data.pipelines} keyOf=${(one) => one.name} textOf=${(one) => one.name}
          linkOf=${(one) => link("pipelines", [one.name])} empty="No pipeline has run on this cluster yet. Start one with: sskafka pipeline run FILE" />`}
      <//>
    </section>`;
}
