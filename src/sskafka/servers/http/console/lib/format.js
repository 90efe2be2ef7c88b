/** Numbers, sizes and times as text. "–" stands for a value that is not known. */
export const UNKNOWN = "–";

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);

/** 1234567 -> "1,234,567" */
export const number = (value) => (isKnown(value) ? WHOLE.format(value) : UNKNOWN);

/** A number that changes all the time: three digits are enough. 1234.5 -> "1,230" */
export const short = (value) => (isKnown(value) ? SHORT.format(value) : UNKNOWN);

/** 1536 -> "1.5 KiB" */
export function bytes(value) {
  if (!isKnown(value)) return UNKNOWN;
  let unit = 0;
  let scaled = value;
  while (Math.abs(scaled) >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? WHOLE.format(Math.round(scaled)) : SHORT.format(scaled)} ${UNITS[unit]}`;
}

export const bytesPerSecond = (value) => (isKnown(value) ? `${bytes(value)}/s` : UNKNOWN);
export const perSecond = (value) => (isKnown(value) ? `${short(value)}/s` : UNKNOWN);
export const percent = (share) => (isKnown(share) ? `${SHORT.format(share * 100)}%` : UNKNOWN);

/** 90_500 -> "1 min 30 s"; the two largest units. */
export function duration(milliseconds) {
  if (!isKnown(milliseconds)) return UNKNOWN;
  if (milliseconds < 1000) return `${SHORT.format(milliseconds)} ms`;
  const seconds = Math.floor(milliseconds / 1000);
  const parts = [
    [Math.floor(seconds / 86400), "d"], [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts.slice(first, first + 2).filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** How long ago a time in milliseconds since the epoch was. */
export const ago = (timeMs, nowMs = Date.now()) =>
  isKnown(timeMs) && timeMs >= 0 ? `${duration(Math.max(0, nowMs - timeMs))} ago` : UNKNOWN;

/** A time of the reader's time zone: "2026-11-17 16:04:05". */
export function time(timeMs) {
  if (!isKnown(timeMs) || timeMs < 0) return UNKNOWN;
  const at = new Date(timeMs);
  const two = (part) => String(part).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** plural(1, "broker") -> "1 broker"; plural(2, "broker") -> "2 brokers" */
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
