/** The same request on the command line. */

/** Quote a word for a shell. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const joined = (words) => words.map((word) => quoted(String(word))).join(" ");

/** Commands that read one record. */
export const recordCommands = (bootstrap, topic, { partition, offset }) => [
  { name: "sskafka", text: joined(["sskafka", "topic", "consume", topic, "-b", bootstrap, "-p", partition, "-o", `${offset}:${offset + 1}`, "--format", "json"]) },
  { name: "kcat", text: joined(["kcat", "-C", "-b", bootstrap, "-t", topic, "-p", partition, "-o", offset, "-c", 1, "-J"]) },
];

/**
 * Commands that read what the page shows.
 * @param {{partitions: string, from: string, order: string, isTail: boolean, limit: number}} view
 */
export function viewCommands(bootstrap, topic, { partitions, from, order, isTail, limit }) {
  const numbers = partitions === "" ? [] : partitions.split(",");
  const isNewest = order === "newest" && !isTail;
  const start = from || (isTail ? "end" : isNewest ? `-${limit}` : "start");
  const own = ["sskafka", "topic", "consume", topic, "-b", bootstrap, ...numbers.flatMap((one) => ["-p", one]), "-o", start];
  if (!isTail) own.push("-e");
  const kcat = ["kcat", "-C", "-b", bootstrap, "-t", topic, ...(numbers.length === 1 ? ["-p", numbers[0]] : []), "-o", kcatOffset(start)];
  if (!isTail) kcat.push("-e");
  return [{ name: "sskafka", text: joined(own) }, { name: "kcat", text: joined(kcat) }];
}

function kcatOffset(start) {
  if (start.startsWith("@")) return `s@${Number.isNaN(Date.parse(start.slice(1))) ? start.slice(1) : Date.parse(start.slice(1))}`;
  return { start: "beginning" }[start] ?? start.replace(/^\+/, "");
}
