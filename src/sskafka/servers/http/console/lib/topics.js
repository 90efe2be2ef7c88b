/**
 * All topics of the cluster, with rates.
 *
 * A first small page is shown at once, larger ones follow. After that the list is read again and again: the more topics
 * there are, the longer that takes, and the longer the pause.
 */
import { get } from "./api.js";
import { useReconnect } from "./live.js";
import { rate } from "./rates.js";
import { useCallback, useEffect, useState } from "./html.js";

const FIRST_PAGE = 200;
const PAGE = 10000;
const PAUSE_MS = 4000;
const PAUSE_FACTOR = 8;

/** Kept while other pages are shown, so that the list is there at once on the way back. */
let kept = { topics: [], isWhole: false };
let counters = new Map();

/** @returns {{topics: object[], isWhole: boolean, error: ?Error, reload: () => void}} Topics by name. */
export function useTopics() {
  const [state, setState] = useState({ ...kept, error: null });
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((count) => count + 1), []);
  useReconnect(reload);

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const show = (topics, isWhole) => {
      kept = { topics, isWhole };
      setState({ topics, isWhole, error: null });
    };
    const read = async () => {
      const began = performance.now();
      try {
        show(await readAll(abort.signal, kept.isWhole ? null : (topics) => show(topics, false)), true);
      } catch (error) {
        if (error.name === "AbortError") return;
        setState((last) => ({ ...last, error }));
      }
      timer = setTimeout(() => (document.hidden ? later() : read()), pause(began));
    };
    const later = () => { timer = setTimeout(() => (document.hidden ? later() : read()), PAUSE_MS); };
    const pause = (began) => Math.max(PAUSE_MS, PAUSE_FACTOR * (performance.now() - began));
    read();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [turn]);

  return { ...state, reload };
}

/** Read all pages. `onFirst` receives the first ones before the others are there. */
async function readAll(signal, onFirst) {
  let topics = [];
  let after = "";
  const seen = new Map();
  while (after !== null) {
    const limit = topics.length === 0 && onFirst ? FIRST_PAGE : PAGE;
    const page = await get("topics", { after, limit }, { signal });
    topics = topics.concat(page.topics.map((topic) => withRates(topic, page.time_ms, seen)));
    after = page.next_name;
    if (after !== null) onFirst?.(topics);
  }
  counters = seen;
  return topics;
}

/** Add rates since the list was last read. */
function withRates(topic, timeMs, seen) {
  const before = counters.get(topic.name);
  seen.set(topic.name, { timeMs, messages_in: topic.messages_in, bytes_in: topic.bytes_in, bytes_out: topic.bytes_out });
  const since = (name) => (before ? rate(before[name], topic[name], (timeMs - before.timeMs) / 1000) : null);
  return { ...topic, messages_rate: since("messages_in"), in_rate: since("bytes_in"), out_rate: since("bytes_out") };
}
