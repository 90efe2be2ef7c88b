/** Routes that answer in pages: the first one at once, others when the reader asks for more. */
import { get } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";

const NOTHING = { pages: [], error: null, isLoading: true };

/**
 * @param {string} path
 * @param {object} params
 * @param {(page: object) => ?object} nextOf Parameters of the page after this one; null after the last page.
 * @returns {{pages: object[], error: ?Error, isLoading: boolean, hasMore: boolean, more: () => void, reload: () => void}}
 */
export function usePages(path, params, nextOf) {
  const [state, setState] = useState(NOTHING);
  const [turn, setTurn] = useState(0);
  const abort = useRef(null);
  const read = (pages, next) => {
    abort.current?.abort();
    const own = (abort.current = new AbortController());
    setState({ pages, error: null, isLoading: true });
    get(path, { ...params, ...next }, { signal: own.signal }).then(
      (page) => setState({ pages: [...pages, page], error: null, isLoading: false }),
      (error) => error.name !== "AbortError" && setState({ pages, error, isLoading: false }),
    );
  };
  useEffect(() => {
    read([], {});
    return () => abort.current.abort();
  }, [path, JSON.stringify(params), turn]);
  const last = state.pages.at(-1);
  const next = last ? nextOf(last) : null;
  return { ...state, hasMore: next !== null, more: () => read(state.pages, next), reload: () => setTurn((count) => count + 1) };
}
