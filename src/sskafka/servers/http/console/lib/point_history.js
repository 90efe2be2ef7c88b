/** Points of charts from two sources: what the broker has kept, and what this page has seen. */

const NEAR_S = 8; // the broker takes a sample every five seconds

/**
 * Return the points of both by time. The broker's are left out where the page has its own, and so are points of the page
 * without values (`isGap`) where the broker has others.
 */
export function merged(kept, own, isGap = () => false) {
  const known = own.filter((one) => !isGap(one));
  const missing = without(kept, known);
  const gaps = without(own.filter(isGap), missing);
  return [...missing, ...gaps, ...known].sort((left, right) => left.time_s - right.time_s);
}

/** The points that have no neighbour among the others. */
const without = (points, others) => points.filter((one) => !others.some((other) => Math.abs(other.time_s - one.time_s) < NEAR_S));
