/**
 * Protobuf without a schema: the fields of a message by number, as far as the bytes tell.
 *
 *     1: 150
 *     2: "text"
 *     3 {
 *       1: 0x3ff0000000000000
 *     }
 *
 * Bytes that are not text and can be read as a message are shown as one; both may be wrong. Within bounds, because the
 * bytes are not trusted.
 */
const FIELDS_MAX = 2000;
const DEPTH_MAX = 20;
const VARINT_BYTES_MAX = 10;
const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Return the lines of a message, or null if the bytes are not one. */
export function wireText(data) {
  const budget = { fields: FIELDS_MAX };
  const lines = data.length > 0 ? message(data, 0, budget) : null;
  if (lines === null) return null;
  return budget.fields > 0 ? lines.join("\n") : `${lines.join("\n")}\n…`;
}

function message(data, depth, budget) {
  const lines = [];
  const reader = { data, at: 0 };
  while (reader.at < data.length && budget.fields > 0) {
    const field = next(reader);
    if (field === null) return null;
    budget.fields -= 1;
    lines.push(...shown(field, depth, budget));
  }
  return lines;
}

/** Return {number, type, value} and move on; null where no field begins. Groups are not read. */
function next(reader) {
  const tag = varint(reader);
  if (tag === null || tag < 8n || tag > 0xffffffffn) return null;
  const [number, type] = [tag >> 3n, Number(tag & 7n)];
  if (type === VARINT) {
    const value = varint(reader);
    return value === null ? null : { number, type, value };
  }
  const length = { [FIXED64]: 8n, [FIXED32]: 4n }[type] ?? (type === BYTES ? varint(reader) : null);
  if (length === null || BigInt(reader.at) + length > BigInt(reader.data.length)) return null;
  const value = reader.data.subarray(reader.at, reader.at + Number(length));
  reader.at += Number(length);
  return { number, type, value };
}

function varint(reader) {
  let value = 0n;
  for (let count = 0; count < VARINT_BYTES_MAX && reader.at < reader.data.length; count += 1) {
    const byte = reader.data[reader.at];
    reader.at += 1;
    value |= BigInt(byte & 0x7f) << BigInt(7 * count);
    if (byte < 0x80) return value;
  }
  return null;
}

function shown({ number, type, value }, depth, budget) {
  const indent = "  ".repeat(depth);
  if (type === VARINT) return [`${indent}${number}: ${value}`];
  if (type !== BYTES) return [`${indent}${number}: 0x${hex([...value].reverse())}`];
  const text = textOf(value);
  if (text !== null) return [`${indent}${number}: ${JSON.stringify(text)}`];
  const inner = depth < DEPTH_MAX ? message(value, depth + 1, budget) : null;
  return inner === null ? [`${indent}${number}: ${hex(value)} (${value.length} bytes)`] : [`${indent}${number} {`, ...inner, `${indent}}`];
}

/** Return UTF-8 without control characters, or null. */
function textOf(data) {
  try {
    const text = UTF8.decode(data);
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

const hex = (data) => Array.from(data.slice(0, 32), (byte) => byte.toString(16).padStart(2, "0")).join("") + (data.length > 32 ? "…" : "");
