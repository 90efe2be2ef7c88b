/** Whether the page is live: a mark in the header, and a banner while the broker does not answer. */
import { html, useEffect, useState } from "../lib/html.js";
import { duration } from "../lib/format.js";
import { retryNow, useConnection } from "../lib/live.js";
import { Button } from "./basics.js";
import { Icon } from "./icons.js";

const WORDS = { waiting: "connecting", open: "live", lost: "not connected" };

export function ConnectionMark() {
  const { state } = useConnection();
  return html`<span class=${`connection ${state}`}><span class="dot" aria-hidden="true"></span>${WORDS[state]}</span>`;
}

export function ConnectionBanner() {
  const { state, sinceMs, problem } = useConnection();
  const now = useClock(state === "lost");
  if (state === "lost") {
    return html`
      <div class="banner bad" role="alert">
        <${Icon} name="warning" />
        <p><strong>The broker at ${location.host} does not answer.</strong>
          ${" "}Trying again since ${duration(now - sinceMs)}; the page continues by itself when the broker is back.
          ${" "}Until then the numbers are old. Every other broker of the cluster has this console, too.</p>
        <${Button} onClick=${retryNow}>Try now<//>
      </div>`;
  }
  if (!problem) return null;
  return html`<div class="banner warning" role="alert"><${Icon} name="warning" /><p><strong>The cluster does not answer:</strong> ${problem}</p></div>`;
}

/** The current time, which changes every second while `isRunning`. */
function useClock(isRunning) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isRunning) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
