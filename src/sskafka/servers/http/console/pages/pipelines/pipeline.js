/** One pipeline: figures, progress over time, its graph, queries and past runs. */
import { Card, Empty, Figure, Figures, Loaded, PageTitle } from "../../components/basics.js";
import { Chart } from "../../components/chart.js";
import { Table } from "../../components/table.js";
import { useData } from "../../lib/data.js";
import { ago, duration, number, perSecond, time } from "../../lib/format.js";
import { html, useMemo } from "../../lib/html.js";
import { marked } from "../../lib/odd_text.js";
import { link } from "../../lib/router.js";
import { DeadLetters } from "./dead_letters.js";
import { RunState } from "./list.js";

const EVERY_MS = 2000;

export function PipelinePage({ name }) {
  const found = useData(`pipelines/${encodeURIComponent(name)}`, {}, EVERY_MS);
  return html`
    <${PageTitle} title=${name} back=${{ href: link("pipelines"), label: "Pipelines" }} />
    <${Loaded} state=${found}>${(pipeline) => html`
      <${Summary} pipeline=${pipeline} />
      <${Progress} samples=${pipeline.samples} />
      <${Graph} graph=${pipeline.graph} />
      ${pipeline.dead_letter_topic && html`<${DeadLetters} topic=${pipeline.dead_letter_topic} />`}
      <${Card} flush title="Queries"><${Table} label="Queries" noun="query" columns=${QUERY_COLUMNS} rows=${pipeline.queries} keyOf=${(one) => one.query} empty="No micro-batch has ended yet." /><//>
      <${Card} flush title="Runs"><${Table} label="Runs" noun="run" columns=${RUN_COLUMNS} rows=${pipeline.past_runs} keyOf=${(one) => one.run} initialSort=${{ name: "started", descending: true }} /><//>`}
    <//>`;
}

function Summary({ pipeline }) {
  const state = pipeline.queries.reduce((rows, query) => rows + query.state_rows, 0);
  const watermarks = pipeline.queries.map((query) => query.watermark).filter(Boolean).sort();
  return html`
    ${pipeline.error && html`<${Card}><p class="failure" role="alert">${marked(pipeline.error)}</p><//>`}
    <${Figures}>
        <${Figure} label="State" value=${html`<${RunState} run=${pipeline} />`} note=${ago(pipeline.started_ms)} />
        <${Figure} label="Rows in" value=${number(pipeline.rows_in)} note=${pipeline.is_running && perSecond(pipeline.in_per_s)} />
        <${Figure} label="Rows out" value=${number(pipeline.rows_out)} note=${pipeline.is_running && perSecond(pipeline.out_per_s)} />
        <${Figure} label="Lag" value=${number(pipeline.lag)} note="records" />
        <${Figure} label="State rows" value=${number(state)} />
        <${Figure} label="Watermark" value=${watermarks[0] ? marked(watermarks[0]) : "–"} />
        <${Figure} label="Dead letters" value=${number(pipeline.dead_letters)} tone=${pipeline.dead_letters ? "warning" : undefined} />
    <//>`;
}

const RATES = [{ label: "in" }, { label: "out" }];
const LAG = [{ label: "lag" }];
const BATCHES = [{ label: "longest batch" }];

function Progress({ samples }) {
  const [rates, lag, batches] = useMemo(() => {
    const times = samples.map((one) => one.time_ms / 1000);
    return [
      [times, samples.map((one) => one.in_per_s), samples.map((one) => one.out_per_s)],
      [times, samples.map((one) => one.lag)],
      [times, samples.map((one) => one.batch_ms)],
    ];
  }, [samples]);
  if (samples.length === 0) return html`<${Card} title="Progress"><${Empty}>The run has told no progress yet.<//><//>`;
  return html`
    <div class="charts">
      <${Card} title="Rows a second"><${Chart} label="Rows a second" series=${RATES} data=${rates} format=${perSecond} /><//>
      <${Card} title="Lag"><${Chart} label="Lag in records" series=${LAG} data=${lag} format=${number} /><//>
      <${Card} title="Micro-batches"><${Chart} label="Duration of micro-batches" series=${BATCHES} data=${batches} format=${duration} /><//>
    </div>`;
}

/** Sources, steps and sinks from left to right. */
function Graph({ graph }) {
  const columns = [["Sources", graph.sources], ["Steps", graph.steps], ["Sinks", graph.sinks]].filter(([, nodes]) => nodes.length > 0);
  if (columns.length === 0) return null;
  return html`
    <${Card} title="Graph">
      <div class="pipeline-graph">
        ${columns.map(([title, nodes]) => html`
          <section key=${title} aria-label=${title}>
            <h3>${title}</h3>
            <ul>${nodes.map((node) => html`<li key=${node.name}><b>${marked(node.name)}</b><pre tabindex="0" aria-label=${node.name}>${marked(node.text)}</pre></li>`)}</ul>
          </section>`)}
      </div>
    <//>`;
}

const QUERY_COLUMNS = [
  { name: "query", title: "Query", value: (one) => one.query, wide: true },
  { name: "batch", title: "Batch", value: (one) => one.batch, cell: (one) => (one.batch < 0 ? "–" : number(one.batch)), align: "end" },
  { name: "in", title: "Rows in", value: (one) => one.rows_in, cell: (one) => number(one.rows_in), align: "end" },
  { name: "out", title: "Rows out", value: (one) => one.rows_out, cell: (one) => number(one.rows_out), align: "end" },
  { name: "lag", title: "Lag", value: (one) => one.lag, cell: (one) => number(one.lag), align: "end", hide: "phone" },
  { name: "state", title: "State rows", value: (one) => one.state_rows, cell: (one) => number(one.state_rows), align: "end", hide: "phone" },
  { name: "took", title: "Last batch", value: (one) => one.batch_ms, cell: (one) => duration(one.batch_ms), align: "end", hide: "phone" },
  { name: "reads", title: "Reads", value: (one) => one.reads, cell: (one) => html`<span class="mono">${marked(one.reads)}</span>`, hide: "phone" },
];

const RUN_COLUMNS = [
  { name: "run", title: "Run", value: (one) => one.run, cell: (one) => html`<span class="mono">${marked(one.run)}</span>` },
  { name: "state", title: "State", value: (one) => one.state, cell: (one) => html`<${RunState} run=${one} />` },
  { name: "started", title: "Started", value: (one) => one.started_ms, cell: (one) => time(one.started_ms), align: "end" },
  { name: "took", title: "Took", value: (one) => one.last_event_ms - one.started_ms, cell: (one) => duration(one.last_event_ms - one.started_ms), align: "end", hide: "phone" },
  { name: "in", title: "Rows in", value: (one) => one.rows_in, cell: (one) => number(one.rows_in), align: "end", hide: "phone" },
  { name: "out", title: "Rows out", value: (one) => one.rows_out, cell: (one) => number(one.rows_out), align: "end", hide: "phone" },
  { name: "dead", title: "Dead letters", value: (one) => one.dead_letters, cell: (one) => number(one.dead_letters), align: "end", hide: "phone" },
  { name: "error", title: "Error", value: (one) => one.error, cell: (one) => one.error && html`<span class="glance" title=${one.error}>${marked(one.error.slice(0, 120))}</span>`, hide: "phone" },
];
