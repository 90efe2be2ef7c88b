/**
 * Untrusted text, made harmless: characters that are invisible, or that turn the text around them, are shown as marks.
 * Nothing here makes HTML of text.
 */
import { html } from "./html.js";

// Controls except tab and newline, invisible characters, and those that change the direction of the text.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const MARKED_MAX = 2000; // a megabyte of controls would be a million elements

/** Return text as parts for `html`: plain text, and marks such as \x1b or U+202E. */
export function marked(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(ODD)) {
    if (parts.length >= MARKED_MAX) break;
    if (match.index > from) parts.push(text.slice(from, match.index));
    parts.push(html`<span class="odd" title=${codeOf(match[0])}>${markOf(match[0])}</span>`);
    from = match.index + match[0].length;
  }
  const rest = text.slice(from);
  parts.push(parts.length >= MARKED_MAX ? rest.replace(ODD, "\u00b7") : rest);
  return parts;
}

const codeOf = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

function markOf(character) {
  const code = character.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : codeOf(character);
}

/** Indent JSON text. Numbers and strings stay as they are written, so that no digit is lost. */
export function indented(text) {
  let depth = 0;
  let shown = "";
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/gs)) {
    if (token === "{" || token === "[") {
      depth += 1;
      shown += token + line(depth);
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const start = shown.trimEnd();
      const isEmpty = start.endsWith(token === "}" ? "{" : "[");
      shown = isEmpty ? start + token : shown + line(depth) + token;
    } else if (token === ",") {
      shown += token + line(depth);
    } else {
      shown += token === ":" ? ": " : token;
    }
  }
  return shown;
}

const line = (depth) => `\n${"  ".repeat(Math.min(depth, 40))}`;

/** Return the bytes of base64. */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** Bytes as hexadecimal rows of 16 with their offsets and their ASCII characters. */
export function hexDump(data) {
  const rows = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const ascii = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    rows.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${ascii}`);
  }
  return rows.join("\n");
}
