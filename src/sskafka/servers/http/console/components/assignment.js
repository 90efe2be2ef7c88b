/** Which member has which partitions, as a picture: a strip of partitions for each topic, lettered by member. */
import { number } from "../lib/format.js";
import { classes, html, useMemo, useState } from "../lib/html.js";
import { Card, Empty } from "./basics.js";

const COLOURS = 6;

/** A, B, ..., Z, AA, AB, ... */
const letters = (at) => (at < 26 ? "" : letters(Math.floor(at / 26) - 1)) + String.fromCharCode(65 + (at % 26));

function byTopic(group) {
  const topics = new Map();
  const lags = new Map(group.partitions.map((one) => [`${one.topic}-${one.partition}`, one.lag]));
  const owners = new Map();
  group.members.forEach((member, at) => member.partitions.forEach((name) => owners.set(name, at)));
  for (const name of new Set([...lags.keys(), ...owners.keys()])) {
    const dash = name.lastIndexOf("-");
    const cells = topics.get(name.slice(0, dash)) ?? [];
    cells.push({ partition: Number(name.slice(dash + 1)), owner: owners.get(name) ?? null, lag: lags.get(name) ?? null });
    topics.set(name.slice(0, dash), cells);
  }
  return [...topics].sort().map(([topic, cells]) => [topic, cells.sort((left, right) => left.partition - right.partition)]);
}

export function Assignment({ group }) {
  const [chosen, setChosen] = useState(null);
  const topics = useMemo(() => byTopic(group), [group]);
  if (group.members.length === 0) return html`<${Card}><${Empty}>The group has no members.<//><//>`;
  return html`
    <${Card} title="Members">
      <ul class="members">
        ${group.members.map((member, at) => html`
          <li key=${member.member_id}>
            <button type="button" class=${classes("member", chosen === at && "chosen")} aria-pressed=${String(chosen === at)} onClick=${() => setChosen(chosen === at ? null : at)}>
              <span class=${`letter series-${at % COLOURS}`}>${letters(at)}</span>
              <span><strong>${member.client_id || "no client id"}</strong>${member.instance_id && html` <small>static ${member.instance_id}</small>`}
                <small class="mono">${member.host} · ${member.member_id}</small></span>
              <span class="count">${number(member.partitions.length)}</span>
            </button>
          </li>`)}
      </ul>
    <//>
    <${Card} title="Partitions">
      ${topics.length === 0 && html`<${Empty}>No partition is assigned.<//>`}
      ${topics.map(([topic, cells]) => html`
        <figure key=${topic} class="strip">
          <figcaption>${topic}</figcaption>
          <ol>
            ${cells.map((cell) => {
              const owner = cell.owner === null ? null : group.members[cell.owner];
              const label = `${topic}-${cell.partition}: ${owner ? `${letters(cell.owner)}, ${owner.client_id}` : "nobody"}${cell.lag ? `, lag ${number(cell.lag)}` : ""}`;
              return html`
                <li key=${cell.partition} title=${label}
                  class=${classes("cell", owner ? `series-${cell.owner % COLOURS}` : "nobody", chosen !== null && chosen !== cell.owner && "dim")}>
                  <span class="letter" aria-hidden="true">${owner ? letters(cell.owner) : "–"}</span><small aria-hidden="true">${cell.partition}</small><span class="unseen">${label}</span>
                </li>`;
            })}
          </ol>
        </figure>`)}
    <//>`;
}
