/** The frame of the console: header, navigation, and the page that the address names. */
import { html, render, useEffect, useErrorBoundary, useState } from "./lib/html.js";
import { ConnectionBanner, ConnectionMark } from "./components/connection.js";
import { Failure, Loading, PageTitle } from "./components/basics.js";
import { Icon } from "./components/icons.js";
import { link, useRoute } from "./lib/router.js";
import { loadSession, useSession } from "./lib/session.js";
import { PAGES } from "./pages.js";
import { startLive } from "./lib/live.js";
import "./lib/load_history.js"; // keeps the traffic from the first moment on, whichever page is shown
import { ThemeSwitch } from "./components/theme_switch.js";
import { Toasts } from "./components/toast.js";

function App() {
  const route = useRoute();
  return html`
    <a class="skip-link" href="#main" onClick=${skipToMain}>Skip to the content</a>
    <${Header} />
    <${Navigation} current=${route.page} />
    <main id="main" tabindex="-1">
      <${ConnectionBanner} />
      <${Page} key=${route.page} route=${route} />
    </main>
    <${Toasts} />`;
}

/** The address is the router's, so the link to the content only moves the focus. */
function skipToMain(event) {
  event.preventDefault();
  const main = document.getElementById("main");
  main.focus();
  main.scrollIntoView();
}

function Header() {
  const session = useSession();
  return html`
    <header class="top">
      <a class="brand" href="#/"><img src="console/icon.svg" alt="" width="26" height="26" /> SSKafka</a>
      <span class="where">${session.is_known && html`broker ${session.node_id}<span class="hide-phone"> · ${session.version} · ${session.principal}</span>`}</span>
      ${session.is_known && session.is_read_only && html`<span class="badge" title="console.read.only is set: this console changes nothing"><${Icon} name="lock" size=${13} /> read only</span>`}
      <${ConnectionMark} />
      <${ThemeSwitch} />
    </header>`;
}

const Navigation = ({ current }) => html`
  <nav aria-label="Pages">
    <ul>
      ${PAGES.map((page) => html`
        <li key=${page.name}>
          <a href=${link(page.name)} aria-current=${page.name === current ? "page" : undefined}><${Icon} name=${page.icon} />${page.title}</a>
        </li>`)}
    </ul>
    <a class="api" href="docs">HTTP API</a>
  </nav>`;

/** Load the module of a page when it is first shown. An error of one page leaves the others usable. */
function Page({ route }) {
  const [loaded, setLoaded] = useState({ component: null, error: null });
  const [crash] = useErrorBoundary((error) => console.error(error));
  const page = PAGES.find((one) => one.name === route.page);
  useEffect(() => {
    page?.load().then(
      (module) => setLoaded({ component: module.default, error: null }),
      (error) => setLoaded({ component: null, error }),
    );
  }, [page]);
  if (!page) return html`<${PageTitle} title="No such page" /><p>There is no page “${route.page}”. <a href="#/">Go to the overview.</a></p>`;
  const error = crash ?? loaded.error;
  if (error) return html`<${PageTitle} title=${page.title} /><${Failure} error=${error} />`;
  if (!loaded.component) return html`<${Loading} />`;
  return html`<${loaded.component} parts=${route.parts} query=${route.query} />`;
}

loadSession();
startLive();
const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
