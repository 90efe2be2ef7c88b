/** Data of JSON routes in components. */
import { get } from "./api.js";
import { useReconnect } from "./live.js";
import { useCallback, useEffect, useState } from "./html.js";

/**
 * Read a route, again every `everyMs` while the page is visible (0: once), and whenever the connection is back.
 * A null path reads nothing. While a newer answer is awaited, or after an error, `data` keeps the last answer.
 *
 * @returns {{data: any, error: ?Error, isLoading: boolean, reload: () => void}}
 */
export function useData(path, params = {}, everyMs = 0) {
  const [state, setState] = useState({ key: "", data: null, error: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  const key = `${path}?${JSON.stringify(params)}`;
  const reload = useCallback(() => setTurn((count) => count + 1), []);
  useReconnect(reload);

  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    get(path, params, { signal: abort.signal })
      .then((data) => setState({ key, data, error: null, isLoading: false }))
      .catch((error) => {
        if (error.name !== "AbortError") setState((last) => ({ ...sameKey(last, key), error, isLoading: false }));
      });
    return () => abort.abort();
  }, [key, turn]);

  useEffect(() => {
    if (!everyMs || path === null) return undefined;
    const timer = setInterval(() => document.hidden || reload(), everyMs);
    return () => clearInterval(timer);
  }, [key, everyMs]);

  return { ...sameKey(state, key), reload };
}

/** The state, without the data of another route. */
const sameKey = (state, key) => (state.key === key ? state : { key, data: null, error: null, isLoading: true });
