/** A live line chart: uPlot, in the colours of the page, as wide as its place. */
import { html, useEffect, useRef } from "../lib/html.js";
import { chosenTheme } from "./theme_switch.js";
import { useStore } from "../lib/store.js";
import uPlot from "../vendor/uplot.js";

const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

/** Return a colour of the style sheet as it is now, light or dark: a canvas knows no variables. */
function colour(name, place, opacity = 1) {
  place.style.color = `var(${name})`;
  const text = getComputedStyle(place).color;
  place.style.color = "";
  return opacity === 1 ? text : text.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}

/**
 * @param {object} props
 * @param {string} props.label What the chart shows, for screen readers.
 * @param {{label: string}[]} props.series One for each row of values.
 * @param {Array<Array<?number>>} props.data Times in seconds, then the values of each series; null: not known.
 * @param {(value: ?number) => string} props.format Value to text.
 */
export function Chart({ label, series, data, format, height = 180 }) {
  const place = useRef(null);
  const chart = useRef(null);
  const newest = useRef(data);
  newest.current = data;
  const theme = useStore(chosenTheme);
  const shape = series.map((one) => one.label).join("\n");

  useEffect(() => {
    const width = place.current.clientWidth || 300;
    chart.current = new uPlot(options(series, format, width, height, place.current), newest.current, place.current);
    const watch = new ResizeObserver(([entry]) => chart.current?.setSize({ width: Math.floor(entry.contentRect.width), height }));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      chart.current.destroy();
      chart.current = null;
    };
  }, [shape, theme, height]);

  useEffect(() => chart.current?.setData(data), [data]);

  return html`<div class="chart" ref=${place} role="img" aria-label=${`${label}. ${summary(series, data, format)}`}></div>`;
}

const summary = (series, data, format) =>
  series.map((one, at) => `${one.label}: ${format(data[at + 1]?.at(-1) ?? null)}`).join(", ");

function options(series, format, width, height, place) {
  const axis = { stroke: colour("--muted", place), grid: { stroke: colour("--grid", place), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height,
    legend: { live: true },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
    axes: [
      { ...axis, values: (_, times) => times.map(clock), space: 70 },
      { ...axis, values: (_, values) => values.map((value) => format(value)), size: 74, space: 34 },
    ],
    series: [
      { value: (_, at) => (at ? clock(at) : "") },
      ...series.map((one, at) => ({
        label: one.label,
        stroke: colour(COLOURS[at % COLOURS.length], place),
        fill: series.length <= 2 ? colour(COLOURS[at % COLOURS.length], place, 0.12) : undefined,
        width: 1.75,
        points: { show: false },
        value: (_, value) => format(value),
      })),
    ],
  };
}

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);
