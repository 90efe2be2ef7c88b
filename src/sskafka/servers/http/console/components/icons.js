/** Line icons, 24 by 24, drawn in the colour of the text. They repeat a label, so screen readers skip them. */
import { html } from "../lib/html.js";

const PATHS = {
  pulse: "M3 12h4l3-8 4 16 3-8h4",
  layers: "M12 3 3 8l9 5 9-5-9-5ZM3 12.5l9 5 9-5M3 17l9 5 9-5",
  mail: "M4 5h16v14H4zM4 7l8 6 8-6",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20c.5-4 3-6 6.500-6s6 2 6.500 6M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c2 .8 3.200 2.600 3.500 5.500",
  exchange: "M4 8h14l-3.500-3.500M20 16H6l3.500 3.500",
  flow: "M5 6h5v5H5zM14 13h5v5h-5zM7.500 11v4.500H14",
  tree: "M4 4h6v5H4zM14 9h6v5h-6zM14 17h6v4h-6zM7 9v10h7M7 11.500h7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  search: "M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13ZM15.500 15.500 21 21",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6 6 18",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500Z",
  contrast: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 3v18M12 7h5M12 11h8M12 15h7",
  warning: "M12 4 2.500 20h19L12 4ZM12 10v5M12 17.500v.5",
  error: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7.500v6M12 16v.5",
  check: "M5 12.500 10 17.500 19.500 7",
  back: "M19 12H5M11 6l-6 6 6 6",
  trash: "M5 7h14M10 4h4M7 7l1 13h8l1-13M10.500 11v5M13.500 11v5",
  lock: "M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3",
};

export const Icon = ({ name, size = 18 }) => html`
  <svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] ?? ""} />
  </svg>`;
