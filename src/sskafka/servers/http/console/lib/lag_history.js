/** The lag of groups in the last minutes: the history that the broker has kept, and a sample for each answer. */
import { get } from "./api.js";
import { merged } from "./point_history.js";
import { store } from "./store.js";

const SAMPLES_MAX = 300; // 15 minutes, at three seconds each
const GROUPS_MAX = 50;
const histories = new Map();

/** Return the history of a group: `add` a description of the group, watch `samples`. */
export function lagHistory(id) {
  if (!histories.has(id)) {
    if (histories.size >= GROUPS_MAX) histories.delete(histories.keys().next().value);
    histories.set(id, made(id));
  }
  return histories.get(id);
}

function made(id) {
  const samples = store({ times: [], records: [], ages: [] });
  let points = [];
  let isAsked = false;
  const show = (next) => {
    points = next.slice(-SAMPLES_MAX);
    samples.set({ times: points.map((one) => one.time_s), records: points.map((one) => one.lag), ages: points.map((one) => one.age) });
  };
  const fill = async () => {
    const kept = await get(`history/groups/${encodeURIComponent(id)}`).catch(() => ({ points: [] }));
    show(merged(kept.points.map((one) => ({ time_s: one.time_ms / 1000, lag: one.lag, age: one.lag_ms })), points));
  };
  return {
    samples,
    add(group) {
      const age = Math.max(0, ...group.partitions.map((one) => one.lag_ms ?? 0));
      show([...points, { time_s: Date.now() / 1000, lag: group.lag, age }]);
      if (!isAsked) fill();
      isAsked = true;
    },
  };
}
