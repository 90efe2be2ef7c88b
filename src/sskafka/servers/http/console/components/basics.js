/** Small parts that every page uses. */
import { classes, html, useEffect, useRef } from "../lib/html.js";
import { replaceQuery } from "../lib/router.js";
import { Icon } from "./icons.js";

/** The title of a page. It takes the focus when the page opens, so that screen readers read it. */
export function PageTitle({ title, back, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · SSKafka`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`
    <header class="page-title">
      ${back && html`<a class="back" href=${back.href}><${Icon} name="back" size=${16} /> ${back.label}</a>`}
      <h1 tabindex="-1" ref=${heading}>${title}</h1>
      <div class="actions">${children}</div>
    </header>`;
}

/** A framed part of a page with a heading. `actions` stand at the right of the heading. */
export const Card = ({ title, actions, children, flush }) => html`
  <section class=${classes("card", flush && "flush")}>
    ${title && html`<header><h2>${title}</h2><div class="actions">${actions}</div></header>`}
    ${children}
  </section>`;

/** A number with its name. `tone`: "good", "warning" or "bad". */
export const Figure = ({ label, value, note, tone }) => html`
  <div class=${classes("figure", tone)}>
    <dt>${label}</dt>
    <dd>${value}${note && html` <small>${note}</small>`}</dd>
  </div>`;

export const Figures = ({ children }) => html`<dl class="figures">${children}</dl>`;

/** A word with a colour that says how good it is: "good", "warning", "bad", or nothing. */
export const Badge = ({ tone, title, children }) => html`<span class=${classes("badge", tone)} title=${title}>${children}</span>`;

/** What is shown instead of data that is not there. */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

export const Loading = () => html`<p class="empty" role="status">Loading …</p>`;

/** The sentence of an error, in the place of the data that could not be read. */
export const Failure = ({ error }) => html`<p class="failure" role="alert"><${Icon} name="error" /> ${error.message}</p>`;

/** Show `children(data)`, or why there is no data yet. Takes what `useData` returns. */
export function Loaded({ state, children }) {
  if (state.data !== null) return children(state.data);
  return state.error ? html`<${Failure} error=${state.error} />` : html`<${Loading} />`;
}

/** A bar that shows a share of a whole, from 0 to 1. */
export const Meter = ({ share, label, tone }) => html`
  <span class=${classes("meter", tone)} role="img" aria-label=${label} title=${label}>
    <span style=${{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }}></span>
  </span>`;

/** Tabs whose choice is in the address. `tabs`: [{name, title}]. The first one is shown by default. */
export function Tabs({ tabs, chosen, parameter = "tab" }) {
  const choose = (name) => replaceQuery({ [parameter]: name === tabs[0].name ? "" : name });
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.name === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    choose(next.name);
    event.currentTarget.querySelector(`[data-name="${next.name}"]`).focus();
  };
  return html`
    <div class="tabs" role="tablist" onKeyDown=${move}>
      ${tabs.map((tab) => html`
        <button type="button" role="tab" key=${tab.name} data-name=${tab.name} aria-selected=${String(tab.name === chosen)}
          tabindex=${tab.name === chosen ? 0 : -1} onClick=${() => choose(tab.name)}>${tab.title}</button>`)}
    </div>`;
}

/** A button. `kind`: "primary", "danger", "quiet" or nothing. */
export const Button = ({ kind, icon, children, ...others }) => html`
  <button type="button" class=${classes("button", kind)} ...${others}>${icon && html`<${Icon} name=${icon} size=${16} />`}${children}</button>`;

/** A labelled input: `children` is a function that receives the id for the input and for its help text. */
export function Field({ id, label, help, error, children }) {
  const helpId = `${id}-help`;
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${children({ id, "aria-describedby": helpId, "aria-invalid": error ? "true" : undefined })}
      <p class=${classes("help", error && "bad")} id=${helpId}>${error || help}</p>
    </div>`;
}
