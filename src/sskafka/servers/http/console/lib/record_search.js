/** A search through records, or a live tail: server-sent events that begin and end when the reader says so. */
import { address, get } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";

export const TAIL_RECORDS_MAX = 500;
const RENDER_MS = 100; // matches are shown together, a few times a second

const IDLE = { isRunning: false, records: [], progress: null, end: null, error: null, isTail: false };

/**
 * @returns {{isRunning: boolean, records: object[], progress: ?object, end: ?string, error: ?Error, isTail: boolean,
 *   start: (topic: string, params: object) => void, stop: () => void, clear: () => void}}
 */
export function useRecordSearch() {
  const [state, setState] = useState(IDLE);
  const running = useRef(null);

  const stop = (end = "stopped") => {
    running.current?.close();
    running.current = null;
    setState((last) => (last.isRunning ? { ...last, isRunning: false, end } : last));
  };

  const clear = () => {
    stop();
    setState(IDLE);
  };

  const start = (topic, params) => {
    running.current?.close();
    const isTail = Boolean(params.follow);
    setState({ ...IDLE, isRunning: true, isTail });
    running.current = listen(topic, params, isTail, setState, () => { running.current = null; });
  };

  useEffect(() => () => running.current?.close(), []);
  return { ...state, start, stop, clear };
}

function listen(topic, params, isTail, setState, onEnd) {
  const path = `topics/${encodeURIComponent(topic)}/records/search`;
  const source = new EventSource(address(path, params));
  let waiting = [];
  let timer = 0;
  const flush = () => {
    clearTimeout(timer);
    timer = 0;
    const arrived = waiting;
    waiting = [];
    if (arrived.length) setState((last) => ({ ...last, records: merged(last.records, arrived, isTail) }));
  };
  const finish = (changes) => {
    flush();
    source.close();
    setState((last) => ({ ...last, isRunning: false, ...changes }));
    onEnd();
  };
  source.addEventListener("record", ({ data }) => {
    waiting.push(JSON.parse(data));
    timer ||= setTimeout(flush, RENDER_MS);
  });
  source.addEventListener("progress", ({ data }) => setState((last) => ({ ...last, progress: JSON.parse(data) })));
  source.addEventListener("end", ({ data }) => {
    const progress = JSON.parse(data);
    finish({ progress, end: progress.end });
  });
  source.addEventListener("problem", ({ data }) => finish({ error: new Error(JSON.parse(data).detail) }));
  source.onerror = () => {
    finish({});
    explain(path, params).then((error) => setState((last) => ({ ...last, error })));
  };
  return { close: () => { clearTimeout(timer); source.close(); } };
}

const merged = (records, arrived, isTail) =>
  isTail ? [...arrived.reverse(), ...records].slice(0, TAIL_RECORDS_MAX) : [...records, ...arrived];

/** An EventSource does not say why it failed. The same request with a budget of one record does. */
async function explain(path, params) {
  try {
    await get(path, { ...params, follow: "", max_records: 1, max_seconds: 1 });
  } catch (error) {
    return error;
  }
  return new Error("The connection ended. Start again.");
}
