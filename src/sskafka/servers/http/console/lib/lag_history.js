/** The lag of groups since the console was opened: a sample for each answer, the last ten minutes or so. */
import { store } from "./store.js";

const SAMPLES_MAX = 240;
const GROUPS_MAX = 50;
const histories = new Map();

/** Return the history of a group: `add` a description of the group, watch `samples`. */
export function lagHistory(id) {
  if (!histories.has(id)) {
    if (histories.size >= GROUPS_MAX) histories.delete(histories.keys().next().value);
    histories.set(id, made());
  }
  return histories.get(id);
}

function made() {
  const samples = store({ times: [], records: [], ages: [] });
  const kept = (values, value) => [...values, value].slice(-SAMPLES_MAX);
  return {
    samples,
    add(group) {
      const { times, records, ages } = samples.get();
      const age = Math.max(0, ...group.partitions.map((one) => one.lag_ms ?? 0));
      samples.set({ times: kept(times, Date.now() / 1000), records: kept(records, group.lag), ages: kept(ages, age) });
    },
  };
}
