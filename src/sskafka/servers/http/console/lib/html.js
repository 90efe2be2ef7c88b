/** Preact, its hooks and htm in one place: every component imports them from here. */
import { h, Fragment, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { Fragment, render };
export {
  useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState,
} from "../vendor/preact-hooks.js";

export const html = htm.bind(h);

/** Join class names; false, null and undefined are left out. */
export const classes = (...names) => names.filter(Boolean).join(" ");
