/**
 * The pages of the console, in the order of the navigation.
 *
 * To add a page, write `pages/NAME.js` and add a row here. The module's default export is a component, which receives
 * `parts` (the decoded parts of the address after the page's name) and `query` (a plain object). `#/topics/orders?x=1`
 * shows the page `topics` with parts ["orders"] and query {x: "1"}.
 */
export const PAGES = [
  { name: "overview", title: "Overview", icon: "pulse", load: () => import("./pages/overview.js") },
  { name: "topics", title: "Topics", icon: "layers", load: () => import("./pages/topics.js") },
  { name: "messages", title: "Messages", icon: "mail", load: () => import("./pages/messages.js") },
  { name: "groups", title: "Groups", icon: "people", load: () => import("./pages/groups.js") },
  { name: "transactions", title: "Transactions", icon: "exchange", load: () => import("./pages/transactions.js") },
  { name: "pipelines", title: "Pipelines", icon: "flow", load: () => import("./pages/pipelines.js") },
  { name: "metadata", title: "Metadata", icon: "tree", load: () => import("./pages/metadata.js") },
  { name: "log", title: "Log files", icon: "file", load: () => import("./pages/log.js") },
];

export const HOME = "overview";
