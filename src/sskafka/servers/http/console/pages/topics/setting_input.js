/** The input for the value of a setting: a choice where the table has few values, else text. */
import { html } from "../../lib/html.js";

const BOOLEANS = ["true", "false"];

/** `setting`: a row of /api/v1/settings/topics, or undefined for a setting that the table does not have. */
export function SettingInput({ props, setting, value, onInput }) {
  const choices = setting?.type === "boolean" ? BOOLEANS : setting?.type === "list" ? [] : setting?.choices ?? [];
  if (choices.length > 0) {
    return html`
      <select ...${props} value=${value} onChange=${(event) => onInput(event.target.value)}>
        ${value === "" && html`<option value="">Choose …</option>`}
        ${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}
      </select>`;
  }
  const hint = setting?.choices?.length ? setting.choices.join(", ") : setting?.default ?? "";
  return html`<input ...${props} autocomplete="off" spellcheck=${false} value=${value} placeholder=${hint} onInput=${(event) => onInput(event.target.value)} />`;
}
