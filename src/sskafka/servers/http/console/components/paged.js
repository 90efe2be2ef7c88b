/** The rows of several pages as one list, with a button for the next page. */
import { html } from "../lib/html.js";
import { Button, Failure, Loading } from "./basics.js";

/** Show `children(pages)` once the first page is there. Takes what `usePages` returns. */
export const Paged = ({ state, label = "More", children }) => html`
  ${state.pages.length > 0 && children(state.pages)}
  ${state.error && html`<${Failure} error=${state.error} />`}
  ${state.isLoading && html`<${Loading} />`}
  ${state.hasMore && !state.isLoading && html`<p class="more"><${Button} onClick=${state.more}>${label}<//></p>`}`;
