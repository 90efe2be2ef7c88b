/**
 * Addresses of pages: `#/topics/orders?sort=size`.
 *
 * They are in the fragment, so that the server has one address for the whole console.
 */
import { HOME } from "../pages.js";
import { store, useStore } from "./store.js";

/** @returns {{page: string, parts: string[], query: Object<string, string>}} */
function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page, ...parts] = path.split("/").map(decode);
  return { page: page || HOME, parts: parts.filter((part) => part !== ""), query: Object.fromEntries(new URLSearchParams(search)) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const route = store(parse(location.hash));
window.addEventListener("hashchange", () => route.set(parse(location.hash)));

export const useRoute = () => useStore(route);

/** Return the address of a page: `link("topics", ["orders"], {tab: "settings"})`. Empty values are left out. */
export function link(page, parts = [], query = {}) {
  const path = [page, ...parts].map(encodeURIComponent).join("/");
  const chosen = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(chosen).toString();
  return `#/${path}${search ? `?${search}` : ""}`;
}

export const go = (page, parts, query) => {
  location.hash = link(page, parts, query);
};

/** Change the query of the current address without a new entry in the history: for searches and tabs. */
export function replaceQuery(changes) {
  const { page, parts, query } = route.get();
  history.replaceState(null, "", link(page, parts, { ...query, ...changes }));
  route.set(parse(location.hash));
}
