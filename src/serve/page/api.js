/*
 * The server: requests that carry the token, and streams that go on where they were cut off.
 *
 * The token is taken out of the address bar before anything else happens. EventSource cannot send
 * a header, so streams are read with fetch().
 */
const KEY = "caisson-token";
const EVENT_MAX = 4 << 20;
const RETRY_MS = 400;
const RETRY_MAX_MS = 8000;

let token = "";

/** An answer that is a problem (RFC 9457); status 0: no answer at all. */
export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Takes the token from the fragment, else the one of this tab. True: the fragment had one. */
export function takeToken() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (!given) {
    token = sessionStorage.getItem(KEY) ?? "";
    return false;
  }
  history.replaceState(null, "", location.pathname);
  setToken(given[1]);
  return true;
}

/** @param {string} text */
export function setToken(text) {
  token = text;
  sessionStorage.setItem(KEY, text);
}

export function forgetToken() {
  token = "";
  sessionStorage.removeItem(KEY);
}

/** @param {Response} response */
async function problemOf(response) {
  const told = await response.json().catch(() => ({}));
  return new Problem(response.status, String(told.code ?? ""), String(told.detail ?? response.statusText));
}

/**
 * One request. Throws Problem, or AbortError when `signal` says so.
 * @param {string} path @param {RequestInit & {json?: unknown}} [options]
 */
async function send(path, options = {}) {
  const headers = new Headers(options.headers);
  let { body } = options;
  if (token) headers.set("Authorization", `Bearer ${token}`);
  if (options.json !== undefined) {
    headers.set("Content-Type", "application/json");
    body = JSON.stringify(options.json);
  }
  let response;
  try {
    response = await fetch(path, { ...options, headers, body, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, "offline", "the server does not answer");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** @param {string} path @param {RequestInit & {json?: unknown}} [options] */
export async function ask(path, options) {
  return (await send(path, options)).json();
}

/** @param {string} path @param {RequestInit} [options] */
export async function askText(path, options) {
  return (await send(path, options)).text();
}

/**
 * Server-sent events of a text; what is not whole yet stays in `rest`.
 * @param {string} text @param {(event: {name: string, id: string, data: string}) => void} take
 */
function takeEvents(text, take) {
  let from = 0;
  for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n", from)) {
    const event = { name: "message", id: "", data: "" };
    for (const line of text.slice(from, end).split("\n")) {
      const colon = line.indexOf(": ");
      if (line.startsWith("event: ")) event.name = line.slice(colon + 2);
      else if (line.startsWith("id: ")) event.id = line.slice(colon + 2);
      else if (line.startsWith("data: ")) event.data = line.slice(colon + 2);
    }
    if (event.data) take(event);
    from = end + 2;
  }
  if (text.length - from > EVENT_MAX) throw new Problem(0, "offline", "an event is too long");
  return text.slice(from);
}

/** A pause that ends early when the signal says so. @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(undefined); }, { once: true });
  });
}

/**
 * Follows a record to its end, over any number of connections.
 * @param {string} path
 * @param {{signal: AbortSignal, after: number, onRecord: (data: string, seq: number) => void,
 *          onState: (isLive: boolean) => void, onProblem: (problem: Problem) => void}} how
 */
export async function follow(path, how) {
  let { after } = how;
  let wait = RETRY_MS;
  let isOver = false;

  const readOnce = async () => {
    const headers = { Accept: "text/event-stream", ...(after ? { "Last-Event-ID": String(after) } : {}) };
    const response = await send(path, { headers, signal: how.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    how.onState(true);
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      wait = RETRY_MS;
      rest = takeEvents(rest + part.value, (event) => {
        if (event.name === "end") isOver = true;
        if (event.name !== "record") return;
        after = Number(event.id);
        how.onRecord(event.data, after);
      });
    }
  };

  while (!how.signal.aborted && !isOver) {
    try {
      await readOnce();
    } catch (error) {
      if (how.signal.aborted) return;
      const isLasting = error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429;
      if (isLasting) {
        how.onProblem(error);
        return;
      }
    }
    if (isOver || how.signal.aborted) break;
    how.onState(false);
    await pause(wait * (0.75 + Math.random() / 2), how.signal);
    wait = Math.min(wait * 2, RETRY_MAX_MS);
  }
}
