/*
 * Words and elements. Everything that comes from the server may be a sandbox's: names, output,
 * sentences. It becomes text nodes and nothing else, and characters that would move or hide
 * others (controls, bidirectional marks) are shown as what they are.
 */
const HIDDEN = /[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** @param {string} text */
export function visible(text) {
  return text.replace(HIDDEN, (char) => {
    if (char === "\n") return "⏎";
    return `\\u{${char.codePointAt(0).toString(16)}}`;
  });
}

/** A text of the interface: a string, or base64 where it is no UTF-8. @param {unknown} value */
export function textOf(value) {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  const coded = /** @type {{base64?: unknown}} */ (value).base64;
  if (typeof coded !== "string") return JSON.stringify(value);
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(coded), (char) => char.charCodeAt(0)));
  } catch {
    return coded;
  }
}

/**
 * An element with attributes and children; strings become text.
 * @param {string} name @param {Record<string, string>} [attributes] @param {...(Node|string)} children
 */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return node;
}

/** @param {string} name @param {Record<string, string | number>} attributes */
export function svg(name, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

/** Sets a text only when it is another one: nothing is laid out or announced again for the same. */
export function setText(node, text) {
  const shown = visible(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** @param {string} id @returns {HTMLElement} */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {number} bytes */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let value = bytes;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at++;
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[at]}`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1) return `${Number(ms.toFixed(2))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 1))} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "12 s ago", else the day and the time. @param {number} at */
export function since(at) {
  const seconds = (Date.now() - at) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** A command as a person typed it. @param {unknown} argv */
export function commandText(argv) {
  if (!Array.isArray(argv)) return "";
  const words = argv.map(textOf);
  if (words.length === 3 && /^(\/bin\/)?(ba)?sh$/.test(words[0]) && words[1] === "-c") return words[2];
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

/** How a command ended. @param {any} end */
export function endText(end) {
  if (!end) return "";
  if (end.reason === "exited") return `exit ${end.exit_code}`;
  if (end.signal) return `${end.reason}, signal ${end.signal_name ?? end.signal}`;
  return end.clock ? `${end.reason} (${end.clock})` : String(end.reason ?? "");
}
