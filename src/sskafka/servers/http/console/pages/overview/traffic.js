/** Charts of traffic, requests and latencies, and the requests by API. */
import { Card, Empty } from "../../components/basics.js";
import { Chart } from "../../components/chart.js";
import { Table } from "../../components/table.js";
import { bytesPerSecond, duration, number, perSecond, short } from "../../lib/format.js";
import { html, useMemo } from "../../lib/html.js";
import { WAITING } from "../../lib/rates.js";

const milliseconds = (value) => (value === null || value === undefined ? "–" : `${short(value)} ms`);

const CHARTS = [
  {
    title: "Throughput", format: bytesPerSecond, isBinary: true,
    series: [{ name: "bytes_in", label: "in" }, { name: "bytes_out", label: "out" }, { name: "replication", label: "replication" }],
  },
  { title: "Records and requests", format: perSecond, series: [{ name: "messages_in", label: "records in" }, { name: "requests", label: "requests" }] },
  {
    title: "Latency, p99", format: milliseconds,
    series: [{ name: "produce_p99_ms", label: "Produce" }, { name: "other_p99_ms", label: "others that do not wait" }],
  },
];

export const Traffic = ({ points }) => html`
  <div class="charts">
    ${CHARTS.map((chart) => html`<${TrafficChart} key=${chart.title} chart=${chart} points=${points} />`)}
  </div>`;

function TrafficChart({ chart, points }) {
  const data = useMemo(
    () => [points.map((one) => one.time_s), ...chart.series.map(({ name }) => points.map((one) => one[name]))],
    [points],
  );
  return html`
    <${Card} title=${chart.title}>
      <${Chart} label=${chart.title} series=${chart.series} data=${data} format=${chart.format} isBinary=${chart.isBinary} />
    <//>`;
}

const latency = (microseconds) => (microseconds === null ? "–" : duration(microseconds / 1000));

const COLUMNS = [
  { name: "name", title: "Request", value: (api) => api.name, cell: (api) => html`${api.name}${WAITING.has(api.name) && html` <small>waits</small>`}` },
  { name: "requests", title: "Rate", align: "end", value: (api) => api.requests, cell: (api) => perSecond(api.requests) },
  { name: "p50", title: "p50", align: "end", value: (api) => api.p50_us, cell: (api) => latency(api.p50_us), hide: "phone" },
  { name: "p99", title: "p99", align: "end", value: (api) => api.p99_us, cell: (api) => latency(api.p99_us) },
  { name: "errors", title: "Errors", align: "end", value: (api) => api.errors, cell: (api) => (api.errors ? perSecond(api.errors) : number(0)) },
];

export function Requests({ apis }) {
  const busy = useMemo(() => apis.filter((api) => api.requests > 0), [apis]);
  return html`
    <${Card} title="Requests of the last two seconds" flush>
      ${busy.length === 0
        ? html`<${Empty}>Rates need two samples, and somebody who sends requests.<//>`
        : html`<${Table} label="Requests" columns=${COLUMNS} rows=${busy} keyOf=${(api) => api.name} initialSort=${{ name: "requests", descending: true }} />`}
    <//>`;
}
