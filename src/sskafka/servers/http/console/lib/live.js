/**
 * The live connection: one stream of server-sent events, shared by all components.
 *
 *     waiting ──open──> open ──error──> lost ──open──> open ...
 *
 * The browser gives up on a stream that was refused, so this module connects again itself: after 1 s, then after twice
 * as long, up to 8 s. A hidden page closes the stream, because nobody looks at it, and the broker serves few streams.
 */
import { address } from "./api.js";
import { store, useStore } from "./store.js";
import { useEffect } from "./html.js";

const RETRY_MS = 1000;
const RETRY_MS_MAX = 8000;
const INTERVAL_MS = 2000;
const SILENT_MS = 15000; // the broker writes at every interval, even if nothing has changed

/** {state: "waiting" | "open" | "lost", sinceMs, problem}: `problem` is a sentence of the broker, or "". */
export const connection = store({ state: "waiting", sinceMs: Date.now(), problem: "" });

/** The newest data of each kind of event. */
const latest = new Map();
const EVENTS = ["health", "load"];

let source = null;
let retryMs = RETRY_MS;
let timer = 0;

const storeOf = (event) => {
  if (!latest.has(event)) latest.set(event, store(null));
  return latest.get(event);
};

/** The newest data of an event ("health", "load"); null before the first. */
export const useLive = (event) => useStore(storeOf(event));

/** Call `watcher` with the data of every event of this name. */
export const watchLive = (event, watcher) => storeOf(event).watch(watcher);

export const useConnection = () => useStore(connection);

/** Call `reload` whenever the connection is back after it was lost. */
export function useReconnect(reload) {
  useEffect(() => {
    let before = connection.get().state;
    return connection.watch(({ state }) => {
      if (before === "lost" && state === "open") reload();
      before = state;
    });
  }, [reload]);
}

export function startLive() {
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
}

/** Try again now instead of after the pause. */
export function retryNow() {
  retryMs = RETRY_MS;
  close();
  open();
}

function open() {
  if (source) return;
  clearTimeout(timer);
  source = new EventSource(address("events", { interval_ms: INTERVAL_MS }));
  source.onopen = () => {
    retryMs = RETRY_MS;
    change("open");
  };
  source.onerror = lose;
  for (const event of EVENTS) source.addEventListener(event, ({ data }) => take(event, JSON.parse(data)));
  source.addEventListener("problem", ({ data }) => change("open", JSON.parse(data).detail));
  expectMore();
}

function take(event, data) {
  expectMore();
  if (event === "health") change("open");
  storeOf(event).set(data);
}

/** Lose a connection that is silent for too long: a broker that is paused keeps its sockets open. */
function expectMore() {
  clearTimeout(timer);
  timer = setTimeout(lose, SILENT_MS);
}

function lose() {
  close();
  change("lost");
  timer = setTimeout(open, retryMs);
  retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function change(state, problem = "") {
  const before = connection.get();
  if (before.state === state && before.problem === problem) return;
  connection.set({ state, problem, sinceMs: before.state === state ? before.sinceMs : Date.now() });
}
