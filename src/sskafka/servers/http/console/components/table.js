/**
 * A table with sorting, a search box and the keyboard, which stays fast with tens of thousands of rows.
 *
 * A column: {name, title, value(row), cell(row)?, align?: "end", wide?, hide?: "phone" | "narrow"}. `value` is what the rows are
 * sorted by, `cell` what is shown. Rows all have the same height, so only those in view (and some more) are in the
 * document; two empty rows keep the room of the others.
 *
 * Keys: "/" goes to the search box, up and down move between rows, Enter opens one.
 */
import { classes, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/html.js";
import { plural } from "../lib/format.js";
import { Empty } from "./basics.js";
import { Icon } from "./icons.js";

const ROW_PX = 41;
const WINDOWED_FROM = 120; // fewer rows are all rendered
const SPARE_ROWS = 12;

/**
 * @param {object} props
 * @param {object[]} props.rows
 * @param {(row: object) => string} props.keyOf Identifies a row.
 * @param {(row: object) => string} [props.linkOf] Address that a row opens; the first column shows it as a link.
 * @param {(row: object) => string} [props.textOf] Text that the search box looks at; without it there is no search box.
 * @param {string} [props.noun] What a row is, for the count: "topic".
 * @param {(rows: object[]) => void} [props.onVisible] Called with the rows in view when they change.
 */
export function Table({ label, columns, rows, keyOf, linkOf, textOf, noun = "row", initialSort, empty, tools, search, onSearch, onVisible }) {
  const [sort, setSort] = useState(initialSort ?? { name: columns[0].name, descending: false });
  const [ownSearch, setOwnSearch] = useState("");
  const wanted = search ?? ownSearch;
  const shown = useMemo(() => sorted(matching(rows, textOf, wanted), columns, sort), [rows, wanted, sort, columns]);
  const body = useRef(null);
  const [first, end] = useWindow(body, shown.length);
  const visible = shown.slice(first, end);
  useEffect(() => onVisible?.(visible), [onVisible, first, end, shown]);

  return html`
    <div class="table-block">
      ${(textOf || tools) && html`
        <div class="table-tools">
          ${textOf && html`<${SearchBox} label=${`Search ${noun}s`} value=${wanted} onInput=${onSearch ?? setOwnSearch} />`}
          <p class="count" role="status">${shown.length === rows.length ? plural(rows.length, noun) : `${plural(shown.length, noun)} of ${rows.length}`}</p>
          <div class="actions">${tools}</div>
        </div>`}
      <div class="table-scroll" tabindex="0" role="region" aria-label=${label}>
        <table aria-rowcount=${shown.length + 1}>
          <thead><tr aria-rowindex="1">${columns.map((column) => html`<${Heading} key=${column.name} column=${column} sort=${sort} onSort=${setSort} />`)}</tr></thead>
          <tbody ref=${body} onKeyDown=${moveBetweenRows}>
            ${first > 0 && html`<tr key="above" aria-hidden="true" style=${{ height: `${first * ROW_PX}px` }}></tr>`}
            ${visible.map((row, index) => html`<${Row} key=${keyOf(row)} row=${row} columns=${columns} linkOf=${linkOf} index=${first + index + 2} />`)}
            ${end < shown.length && html`<tr key="below" aria-hidden="true" style=${{ height: `${(shown.length - end) * ROW_PX}px` }}></tr>`}
          </tbody>
        </table>
      </div>
      ${shown.length === 0 && html`<${Empty}>${rows.length ? `No ${noun} matches the search.` : empty ?? `There are no ${noun}s.`}<//>`}
    </div>`;
}

function Heading({ column, sort, onSort }) {
  const isSorted = sort.name === column.name;
  const direction = sort.descending ? "descending" : "ascending";
  const className = classes(column.align, column.wide && "wide", column.hide && `hide-${column.hide}`);
  if (!column.value) return html`<th scope="col" class=${className}>${column.title}</th>`;
  return html`
    <th scope="col" class=${className} aria-sort=${isSorted ? direction : undefined}>
      <button type="button" class=${classes("sort", isSorted && direction)}
        onClick=${() => onSort({ name: column.name, descending: isSorted ? !sort.descending : column.align === "end" })}>${column.title}</button>
    </th>`;
}

function Row({ row, columns, linkOf, index }) {
  return html`
    <tr aria-rowindex=${index}>
      ${columns.map((column, at) => {
        const content = column.cell ? column.cell(row) : column.value(row);
        const isLink = at === 0 && linkOf;
        return html`
          <td key=${column.name} class=${classes(column.align, column.wide && "wide", column.hide && `hide-${column.hide}`)}>
            ${isLink ? html`<a class="row-link" href=${linkOf(row)}>${content}</a>` : content}
          </td>`;
      })}
    </tr>`;
}

/** A search box that "/" jumps to. */
export function SearchBox({ label, value, onInput, placeholder = "Search" }) {
  const input = useRef(null);
  useEffect(() => {
    const jump = (event) => {
      const isTyping = event.target.closest?.("input, textarea, select, dialog");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", jump);
    return () => document.removeEventListener("keydown", jump);
  }, []);
  return html`
    <label class="search">
      <${Icon} name="search" size=${16} />
      <span class="unseen">${label}</span>
      <input type="search" ref=${input} value=${value} placeholder=${placeholder} spellcheck=${false} autocomplete="off"
        onInput=${(event) => onInput(event.target.value)} />
      <kbd aria-hidden="true">/</kbd>
    </label>`;
}

/** Return the range of rows that are in view, with some more above and below. */
function useWindow(body, count) {
  const [range, setRange] = useState([0, Math.min(count, WINDOWED_FROM)]);
  useLayoutEffect(() => {
    if (count <= WINDOWED_FROM) {
      setRange([0, count]);
      return undefined;
    }
    let frame = 0;
    const look = () => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.min(count - 1, Math.floor(-top / ROW_PX)) - SPARE_ROWS);
      const end = Math.min(count, first + Math.ceil(innerHeight / ROW_PX) + 2 * SPARE_ROWS);
      setRange((last) => (last[0] === first && last[1] === end ? last : [first, end]));
    };
    const later = () => { frame ||= requestAnimationFrame(look); };
    look();
    addEventListener("scroll", later, { passive: true, capture: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", later, { capture: true });
      removeEventListener("resize", later);
    };
  }, [count]);
  return range;
}

function moveBetweenRows(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const row = event.target.closest?.("tr");
  if (!step || !row || !event.target.matches("a, button")) return;
  const target = row[step]?.querySelector("a.row-link, button");
  if (target) {
    event.preventDefault();
    target.focus();
  }
}

function matching(rows, textOf, search) {
  if (!textOf || !search) return rows;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = textOf(row).toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function sorted(rows, columns, { name, descending }) {
  const column = columns.find((one) => one.name === name);
  if (!column?.value) return rows;
  const order = descending ? -1 : 1;
  const keyed = rows.map((row) => [column.value(row), row]);
  keyed.sort(([left], [right]) => order * compare(left, right));
  return keyed.map(([, row]) => row);
}

/** Unknown values sort below all others. */
function compare(left, right) {
  if (left === right) return 0;
  if (left === null || left === undefined) return -1;
  if (right === null || right === undefined) return 1;
  return left < right ? -1 : 1;
}
