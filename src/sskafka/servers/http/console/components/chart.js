/** A live line chart: uPlot, in the colours of the page, as wide as its place, with the values below it. */
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { chosenTheme } from "./theme_switch.js";
import { useStore } from "../lib/store.js";
import uPlot from "../vendor/uplot.js";

const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent);
const SPAN_S_MIN = 60; // a chart that has just begun does not stretch its first points
const colourOf = (at) => COLOURS[at % COLOURS.length];

/**
 * @param {object} props
 * @param {string} props.label What the chart shows, for screen readers.
 * @param {{label: string}[]} props.series One for each row of values.
 * @param {Array<Array<?number>>} props.data Times in seconds, then the values of each series; null: not known.
 * @param {(value: ?number) => string} props.format Value to text.
 * @param {boolean} [props.isBinary] Whether the values are bytes: the lines of the grid are at powers of two.
 */
export function Chart({ label, series, data, format, isBinary = false, height = 160 }) {
  const place = useRef(null);
  const chart = useRef(null);
  const newest = useRef(data);
  newest.current = data;
  const [pointed, setPointed] = useState(null);
  const theme = useStore(chosenTheme);
  const shape = series.map((one) => one.label).join("\n");

  useEffect(() => {
    const size = { width: place.current.clientWidth || 300, height };
    chart.current = new uPlot(options(series, format, isBinary, size, place.current, setPointed), newest.current, place.current);
    const watch = new ResizeObserver(([entry]) => chart.current?.setSize({ width: Math.floor(entry.contentRect.width), height }));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      chart.current.destroy();
      chart.current = null;
    };
  }, [shape, theme, height]);

  useEffect(() => chart.current?.setData(data), [data]);

  const at = pointed !== null && pointed < data[0].length ? pointed : data[0].length - 1;
  return html`
    <figure class="chart">
      <div ref=${place} role="img" aria-label=${`${label}. ${summary(series, data, format)}`}></div>
      <figcaption aria-hidden="true">
        ${series.map((one, index) => html`
          <span key=${one.label}><i class=${`series-${(index % COLOURS.length) + 1}`}></i>${one.label} <b>${format(data[index + 1][at])}</b></span>`)}
        ${pointed !== null && at >= 0 && html`<span class="at">${clock(data[0][at])}</span>`}
      </figcaption>
    </figure>`;
}

const summary = (series, data, format) =>
  series.map((one, at) => `${one.label}: ${format(data[at + 1].at(-1))}`).join(", ");

/** Return a colour of the style sheet as it is now, light or dark: a canvas knows no variables. */
function colour(name, place, opacity = 1) {
  place.style.color = `var(${name})`;
  const text = getComputedStyle(place).color;
  place.style.color = "";
  return opacity === 1 ? text : text.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}

function options(series, format, isBinary, size, place, onPoint) {
  const grid = { stroke: colour("--grid", place), width: 1 };
  const axis = { stroke: colour("--muted", place), grid, ticks: { show: false }, font: "11px system-ui" };
  return {
    ...size,
    legend: { show: false },
    padding: [8, 28, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    hooks: { setCursor: [(chart) => onPoint(chart.cursor.idx ?? null)] },
    scales: { x: { range: (_, first, last) => [Math.min(first, last - SPAN_S_MIN), last] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
    axes: [
      { ...axis, values: (_, times) => times.map(clock), space: 80, size: 26 },
      {
        ...axis, values: (_, values) => values.map((value) => format(value)), size: 76, space: 30,
        ...(isBinary ? { incrs: POWERS_OF_TWO } : {}),
      },
    ],
    series: [{}, ...series.map((one, at) => ({
      label: one.label,
      stroke: colour(colourOf(at), place),
      fill: at === 0 ? colour(colourOf(at), place, 0.1) : undefined,
      width: 1.75,
      points: { show: false },
    }))],
  };
}

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 8);
