/**
 * Requests to the JSON routes of the broker that served this page.
 *
 * Every failure is an ApiError whose message is a sentence for the reader: the server's own `detail` where there is one.
 */
export class ApiError extends Error {
  /** @param {number} status 0 if no answer came. */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const ROOT = new URL("api/v1/", document.baseURI);

/**
 * Return the address of a route: "topics" is /api/v1/topics, "/groups/v1/readers" is itself.
 * Parts of a path that are data must be encoded with `encodeURIComponent` first.
 */
export function address(path, params = {}) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

/** Read a JSON route. `options.signal` aborts it. */
export const get = (path, params, options = {}) => ask(address(path, params), options);

/** Send a change: `send("POST", "topics", {name: "orders"})`. Returns the answer, or null without one. */
export function send(method, path, body) {
  const options = { method, headers: { "Content-Type": "application/json" } };
  if (body !== undefined) options.body = JSON.stringify(body);
  return ask(address(path), options);
}

async function ask(url, options) {
  let response;
  try {
    response = await fetch(url, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, `The broker at ${location.host} does not answer.`);
  }
  const text = await response.text();
  const body = parse(text);
  if (!response.ok) throw new ApiError(response.status, sentence(response, body));
  return body;
}

function parse(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

const sentence = (response, body) =>
  typeof body?.detail === "string" ? body.detail : `The broker answered ${response.status} ${response.statusText}.`;
