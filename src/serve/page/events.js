/*
 * The events of a record: one line each, by kind and by text, the chosen one in full below.
 */
import { Rows } from "./rows.js";
import { byId, commandText, duration, element, endText, setText, svg, visible } from "./text.js";

const KEEP = 100_000; /* events; the oldest are let go, and counted */
const BINS = 120;

/** What a line says, by kind. @type {Record<string, (payload: any) => string>} */
const SAYS = {
  RunStarted: (p) => [commandText(p.command), `${p.tier}/${p.backend}`, `network ${p.network}`].filter(Boolean).join(" · "),
  LockdownStep: (p) => `${p.step}: ${p.why}`,
  Grant: (p) => `${p.what}: ${p.old} → ${p.now} (${p.where})`,
  PolicyOverride: (p) => `${p.what}: ${p.old} → ${p.now} (${p.where})`,
  ExecStarted: (p) => commandText(p.command),
  ExecEnded: (p) => [endText(p.termination), p.usage ? duration(p.usage.wall_ms) : ""].filter(Boolean).join(" · "),
  GateCalled: (p) => `${p.gate}${p.is_error ? ": failed" : ""}`,
  Violation: (p) => `${p.say}${p.count > 1 ? ` (${p.count} times)` : ""}`,
  RunExited: (p) => [endText(p.termination), p.status === undefined ? "" : `status ${p.status}`].filter(Boolean).join(" · "),
};

/** "LockdownStep" → "Lockdown step" */
const kindName = (kind) => kind.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** @param {{event: string, payload: any}} event */
function says(event) {
  try {
    return SAYS[event.event]?.(event.payload) ?? JSON.stringify(event.payload);
  } catch {
    return JSON.stringify(event.payload);
  }
}

/** "+1.204 s" since the first event. */
function offset(ms) {
  const seconds = ms / 1000;
  if (seconds < 60) return `+${seconds.toFixed(3)} s`;
  return `+${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")} min`;
}

export class Events {
  /** @param {{onViolation: (payload: any, isNew: boolean) => void, onEvent: (event: any) => void}} told */
  constructor(told) {
    this.told = told;
    this.view = byId("events");
    this.rows = new Rows(this.view, (node, item, index) => this.draw(node, item, index));
    this.find = /** @type {HTMLInputElement} */ (byId("find"));
    this.find.addEventListener("input", () => this.filter());
    this.view.addEventListener("keydown", (event) => this.onKey(event));
    this.view.addEventListener("click", (event) => this.onClick(event));
    this.clear();
  }

  clear() {
    this.all = [];
    this.queue = [];
    this.dropped = 0;
    this.last = 0;
    this.chosen = null;
    /** @type {Map<string, {count: number, button: HTMLElement, number: HTMLElement}>} */
    this.kinds = new Map();
    this.wanted = new Set();
    this.find.value = "";
    byId("kinds").replaceChildren();
    byId("strip").replaceChildren();
    byId("detail").hidden = true;
    this.view.removeAttribute("aria-activedescendant");
    this.rows.replace([]);
    this.say();
  }

  /** One line of the record, as it came. @param {string} data @param {number} seq */
  add(data, seq) {
    if (seq <= this.last) return;
    this.last = seq;
    this.queue.push(data);
    if (this.queue.length === 1) requestAnimationFrame(() => this.flush());
  }

  /** A frame takes what fits into it; the rest waits for the next. */
  flush() {
    const until = performance.now() + 8;
    const isAtEnd = this.rows.isAtEnd;
    let taken = 0;
    while (taken < this.queue.length && (taken % 32 || performance.now() < until)) this.take(this.queue[taken++]);
    this.queue.splice(0, taken);
    if (this.queue.length) requestAnimationFrame(() => this.flush());
    if (this.all.length > KEEP) {
      this.dropped += this.all.length - KEEP;
      this.all.splice(0, this.all.length - KEEP);
      this.filter();
    }
    this.rows.refresh(isAtEnd && this.all.length > taken);
    this.say();
    this.stripTimer ||= setTimeout(() => this.drawStrip(), 200);
  }

  /** @param {string} data */
  take(data) {
    const event = JSON.parse(data);
    const text = says(event);
    const item = { event, text, at: Date.parse(event.time), search: `${event.event} ${text} ${JSON.stringify(event.payload)}`.toLowerCase() };
    this.all.push(item);
    this.count(event.event);
    if (this.isWanted(item)) this.rows.items.push(item);
    if (event.event === "Violation") this.told.onViolation(event.payload, Date.now() - item.at < 5000);
    this.told.onEvent(event);
  }

  /* ---- filters ------------------------------------------------------------------------------- */

  /** @param {string} kind */
  count(kind) {
    const known = this.kinds.get(kind);
    if (known) {
      known.count++;
      return;
    }
    const number = element("span", { class: "number" });
    const button = element("button", { type: "button", "aria-pressed": "false", "data-kind": kind }, kindName(kind), " ", number);
    button.addEventListener("click", () => {
      const isOn = this.wanted.delete(kind);
      if (!isOn) this.wanted.add(kind);
      button.setAttribute("aria-pressed", String(!isOn));
      this.filter();
    });
    this.kinds.set(kind, { count: 1, button, number });
    byId("kinds").append(button);
  }

  isWanted(item) {
    const text = this.find.value.trim().toLowerCase();
    return (this.wanted.size === 0 || this.wanted.has(item.event.event)) && (!text || item.search.includes(text));
  }

  filter() {
    this.rows.replace(this.all.filter((item) => this.isWanted(item)));
    this.say();
  }

  say() {
    const shown = this.rows.items.length;
    const all = this.all.length;
    for (const { count, number } of this.kinds.values()) setText(number, String(count));
    setText(byId("count"), [shown === all ? `${all} events` : `${shown} of ${all}`,
      this.dropped ? `${this.dropped} older ones are not kept here` : ""].filter(Boolean).join(", "));
  }

  /* ---- lines --------------------------------------------------------------------------------- */

  draw(node, item, index) {
    const isChosen = item === this.chosen;
    node.className = `event kind-${item.event.event.replace(/\W/g, "")}`;
    node.id = `event-${item.event.seq}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-selected", String(isChosen));
    node.setAttribute("aria-posinset", String(index + 1));
    node.setAttribute("aria-setsize", String(this.rows.items.length));
    node.dataset.index = String(index);
    node.replaceChildren(element("span", { class: "at" }, offset(item.at - this.all[0].at)),
      element("span", { class: "kind" }, kindName(item.event.event)), element("span", { class: "says" }, item.text.slice(0, 600)));
  }

  /** @param {number} index */
  choose(index) {
    const item = this.rows.items[index];
    if (!item) return;
    const before = this.rows.items.indexOf(this.chosen);
    this.chosen = item;
    this.rows.reveal(index);
    for (const at of [before, index]) {
      const node = this.rows.shown.get(at);
      if (node) this.draw(node, this.rows.items[at], at);
    }
    this.view.setAttribute("aria-activedescendant", `event-${item.event.seq}`);
    this.showDetail(item);
  }

  showDetail(item) {
    const { event, text } = item;
    const box = byId("detail");
    const json = JSON.stringify(event.payload, null, 2).split("\n").map(visible).join("\n");
    const pre = document.createElement("pre");
    pre.textContent = json;
    box.replaceChildren(element("p", { class: "detail-head" }, element("strong", {}, kindName(event.event)), " ",
      element("span", { class: "quiet" }, `number ${event.seq}, ${event.time}`)), element("p", { class: "detail-says" }, text), pre,
    element("p", { class: "quiet hash" }, `hash ${event.hash}`));
    box.hidden = false;
  }

  onClick(event) {
    const row = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
    if (row) this.choose(Number(/** @type {HTMLElement} */ (row).dataset.index));
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.rows.height) - 1);
    const now = this.rows.items.indexOf(this.chosen);
    const end = this.rows.items.length - 1;
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: end }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.choose(Math.min(end, Math.max(0, to)));
  }

  /** How many events when, and which were violations. */
  drawStrip() {
    this.stripTimer = 0;
    const begin = this.all[0]?.at ?? 0;
    const span = Math.max(1, (this.all.at(-1)?.at ?? 0) - begin);
    const bins = Array.from({ length: BINS }, () => ({ all: 0, violations: 0 }));
    for (const { at, event } of this.all) {
      const bin = bins[Math.min(BINS - 1, Math.max(0, Math.floor(((at - begin) / span) * BINS)))];
      bin.all++;
      if (event.event === "Violation") bin.violations++;
    }
    const most = Math.max(...bins.map((bin) => bin.all), 1);
    const high = (count) => (count ? 2 + 26 * Math.sqrt(count / most) : 0);
    const path = (key) => bins.map((bin, i) => (bin[key] ? `M${i * 5 + 0.5} 30v${-high(bin[key]).toFixed(1)}h4v${high(bin[key]).toFixed(1)}z` : "")).join("");
    const plot = svg("svg", { viewBox: `0 0 ${BINS * 5} 30`, preserveAspectRatio: "none", role: "img",
      "aria-label": `Events over ${duration(span)}, violations marked` });
    plot.append(svg("path", { class: "strip-all", d: path("all") }), svg("path", { class: "strip-violations", d: path("violations") }));
    byId("strip").replaceChildren(plot);
  }
}
