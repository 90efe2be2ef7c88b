/**
 * The traffic of the last minutes: the history that the broker has kept, and points made from the `load` events.
 *
 * The broker is asked when the console is opened, and after a gap: a hidden tab receives no events.
 *
 * A point: {time_s, messages_in, bytes_in, bytes_out, replication, requests, produce_p99_ms, other_p99_ms}.
 */
import { get } from "./api.js";
import { watchLive } from "./live.js";
import { merged as mergedPoints } from "./point_history.js";
import { apiRates, brokerRates, merged, percentile, sum, WAITING } from "./rates.js";
import { store } from "./store.js";

const POINTS_MAX = 450; // 15 minutes, at two seconds each
const GAP_S = 15;

/** {points, brokers: Map, apis, newest}: `brokers` and `apis` have the rates of the last interval. */
export const loadHistory = store({ points: [], brokers: new Map(), apis: [], newest: null });

watchLive("load", (load) => {
  const { newest, points } = loadHistory.get();
  if (newest === null || (load.time_ms - newest.time_ms) / 1000 > GAP_S) {
    loadHistory.set({ points: [...points, gap(load)].slice(-POINTS_MAX), brokers: new Map(), apis: [], newest: load });
    fill();
    return;
  }
  if (load.time_ms <= newest.time_ms) return;
  const brokers = brokerRates(newest, load);
  const apis = apiRates(newest, load);
  loadHistory.set({ points: [...points, point(load, brokers, apis)].slice(-POINTS_MAX), brokers, apis, newest: load });
});

/** Put the points of the broker where this page has none. Without an answer the chart has a gap. */
async function fill() {
  const kept = await get("history/load").catch(() => null);
  if (kept === null) return;
  const state = loadHistory.get();
  const points = kept.points.map(({ time_ms: timeMs, ...point }) => ({ time_s: timeMs / 1000, ...point }));
  loadHistory.set({ ...state, points: mergedPoints(points, state.points, (one) => one.requests === null).slice(-POINTS_MAX) });
}

const NOTHING = {
  messages_in: null, bytes_in: null, bytes_out: null, replication: null, requests: null, produce_p99_ms: null, other_p99_ms: null,
};

/** A point without values, so that the chart shows where nothing was measured. */
const gap = (load) => ({ time_s: load.time_ms / 1000, ...NOTHING });

function point(load, brokers, apis) {
  const total = (name) => sum([...brokers.values()].map((rates) => rates[name]));
  const produce = apis.find((api) => api.name === "Produce");
  const others = apis.filter((api) => api.name !== "Produce" && !WAITING.has(api.name));
  const milliseconds = (buckets) => {
    const latency = percentile(buckets, 0.99);
    return latency === null ? null : latency / 1000;
  };
  return {
    time_s: load.time_ms / 1000,
    messages_in: total("messages_in"),
    bytes_in: total("bytes_in"),
    bytes_out: total("bytes_out"),
    replication: total("replication_bytes_out"),
    requests: sum(apis.map((api) => api.requests)),
    produce_p99_ms: produce ? milliseconds(produce.buckets) : null,
    other_p99_ms: milliseconds(merged(others)),
  };
}
