/**
 * Rates from counters: brokers count, and two samples tell how fast. Counters start at zero when a broker starts, so a
 * counter that is lower than before gives no rate.
 */
const COUNTERS = ["messages_in", "bytes_in", "bytes_out", "replication_bytes_in", "replication_bytes_out", "cpu_ms"];

/** Requests that wait on purpose, for records or for members: their latency says little about the broker. */
export const WAITING = new Set(["Fetch", "JoinGroup", "SyncGroup", "FetchSnapshot"]);

/** Growth of a counter per second, or null if it is not known. */
export function rate(before, now, seconds) {
  if (before === null || before === undefined || now === null || now === undefined || seconds <= 0) return null;
  return now >= before ? (now - before) / seconds : null;
}

/** Rates of each broker between two answers of /api/v1/load: Map of node id to {messages_in, bytes_in, ...}. */
export function brokerRates(before, now) {
  const seconds = (now.time_ms - before.time_ms) / 1000;
  const known = new Map(before.brokers.map((broker) => [broker.node_id, broker]));
  return new Map(now.brokers.map((broker) => {
    const last = known.get(broker.node_id);
    const rates = COUNTERS.map((name) => [name, last ? rate(last[name], broker[name], seconds) : null]);
    return [broker.node_id, Object.fromEntries(rates)];
  }));
}

/** Rates and latencies of each API: [{name, requests, errors, p50_us, p99_us}], the most frequent first. */
export function apiRates(before, now) {
  const seconds = (now.time_ms - before.time_ms) / 1000;
  const known = new Map(before.requests.map((api) => [api.name, api]));
  return now.requests.map((api) => {
    const last = known.get(api.name) ?? { requests: 0, errors: 0, latency_buckets: [] };
    const buckets = api.latency_buckets.map((count, at) => Math.max(0, count - (last.latency_buckets[at] ?? 0)));
    return {
      name: api.name,
      requests: rate(last.requests, api.requests, seconds),
      errors: rate(last.errors, api.errors, seconds),
      buckets,
      p50_us: percentile(buckets, 0.5),
      p99_us: percentile(buckets, 0.99),
    };
  }).sort((left, right) => (right.requests ?? 0) - (left.requests ?? 0));
}

/** The latency in microseconds below which this share of the responses stayed; null without responses. */
export function percentile(buckets, share) {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  for (const [exponent, count] of buckets.entries()) {
    if (seen + count >= share * total) {
      const low = exponent === 0 ? 0 : 2 ** (exponent - 1);
      return low + (2 ** exponent - low) * ((share * total - seen) / count);
    }
    seen += count;
  }
  return 2 ** buckets.length;
}

/** Add up the buckets of several APIs. */
export const merged = (apis) => apis.reduce(
  (sum, api) => api.buckets.map((count, at) => count + (sum[at] ?? 0)), [],
);

export const sum = (values) => {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((total, value) => total + value, 0) : null;
};
