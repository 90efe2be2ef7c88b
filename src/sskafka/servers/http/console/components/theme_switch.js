/** Light, dark, or as the system says. The choice is kept in this browser. */
import { html } from "../lib/html.js";
import { store, useStore } from "../lib/store.js";
import { Icon } from "./icons.js";

const KEY = "sskafka.theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const ICONS = { auto: "contrast", light: "sun", dark: "moon" };

/** "auto", "light" or "dark". */
export const chosenTheme = store(document.documentElement.dataset.theme ?? "auto");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!document.documentElement.dataset.theme) chosenTheme.set("auto ".concat(Date.now())); // colours of charts are drawn again
});

function choose(theme) {
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEY, theme);
  }
  chosenTheme.set(theme);
}

export function ThemeSwitch() {
  const theme = useStore(chosenTheme).split(" ")[0];
  const label = `Colours: ${theme}. Switch to ${NEXT[theme]}`;
  return html`
    <button type="button" class="icon-button" aria-label=${label} title=${label} onClick=${() => choose(NEXT[theme])}>
      <${Icon} name=${ICONS[theme]} />
    </button>`;
}
