/*
 * Usage against limits: a number, a line over time where one is known, and a meter to the limit.
 * The line is drawn to its own height, so that little use of a large limit has a shape too; the
 * meter is what tells how far the limit is.
 */
import { duration, element, setText, size, svg } from "./text.js";

const SAMPLES = 240;
const WIDE = 240;
const HIGH = 40;

/** @typedef {{name: string, value: number, limit: number | null, say: (value: number) => string, isLive: boolean}} Quantity */

class Plot {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.values = [];
    this.now = element("span", { class: "plot-now" });
    this.of = element("span", { class: "quiet" });
    this.area = svg("path", { class: "plot-area" });
    this.line = svg("path", { class: "plot-line", "vector-effect": "non-scaling-stroke" });
    this.svg = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true", class: "plot-svg" });
    this.svg.append(this.area, this.line);
    this.meter = svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true", class: "meter" });
    this.bar = svg("rect", { x: 0, y: 0, width: 0, height: 4, class: "meter-bar" });
    this.meter.append(svg("rect", { x: 0, y: 0, width: 100, height: 4, class: "meter-all" }), this.bar);
    this.node = element("figure", { class: "plot" }, element("figcaption", {}, element("span", { class: "plot-name" }, name), this.now, this.of),
      this.svg, this.meter);
  }

  /** @param {Quantity} quantity */
  show(quantity) {
    const { value, limit, say, isLive } = quantity;
    const share = limit ? Math.min(1, value / limit) : 0;
    setText(this.now, say(value));
    setText(this.of, limit ? `of ${say(limit)}` : "no limit");
    this.svg.toggleAttribute("hidden", !isLive);
    this.meter.toggleAttribute("hidden", !limit);
    this.bar.setAttribute("width", String(value > 0 ? Math.max(0.8, share * 100) : 0));
    this.node.classList.toggle("is-near", share >= 0.8);
    if (isLive) this.draw(value);
  }

  /** @param {number} value */
  draw(value) {
    this.values.push(value);
    if (this.values.length > SAMPLES) this.values.shift();
    const top = Math.max(...this.values, 1e-9) * 1.15;
    const step = WIDE / Math.max(30, this.values.length - 1);
    const from = WIDE - step * (this.values.length - 1);
    const points = this.values.map((each, i) => `${(from + i * step).toFixed(1)} ${(HIGH - 1 - (each / top) * (HIGH - 2)).toFixed(1)}`);
    this.line.setAttribute("d", `M${points.join("L")}`);
    this.area.setAttribute("d", `M${from.toFixed(1)} ${HIGH}L${points.join("L")}L${WIDE} ${HIGH}z`);
  }
}

export class Plots {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    /** @type {Map<string, Plot>} */
    this.plots = new Map();
    this.cpu = null;
    this.place.replaceChildren();
  }

  /** @param {Quantity[]} quantities */
  show(quantities) {
    for (const quantity of quantities) {
      let plot = this.plots.get(quantity.name);
      if (!plot) {
        plot = new Plot(quantity.name);
        this.plots.set(quantity.name, plot);
        this.place.append(plot.node);
      }
      plot.show(quantity);
    }
  }

  /** A sandbox, now. @param {any} stats @param {any} limits of its record, null: not known */
  showStats(stats, limits) {
    const live = (name, value, limit, say) => ({ name, value, limit, say, isLive: true });
    const list = [];
    if (stats.mem_bytes !== null) list.push(live("Memory", stats.mem_bytes, stats.mem_limit, size));
    if (stats.processes !== null) list.push(live("Processes", stats.processes, stats.processes_limit, String));
    const cores = this.cores(stats);
    if (cores !== null) list.push(live("Processor", cores, limits?.cpu_milli ? limits.cpu_milli / 1000 : null, (value) => `${value.toFixed(2)} cores`));
    if (stats.scratch_bytes !== null) list.push(live("Scratch", stats.scratch_bytes, stats.scratch_limit, size));
    if (stats.idle_limit_ms) list.push({ ...live("Idle", stats.idle_ms, stats.idle_limit_ms, duration), isLive: false });
    this.show(list);
  }

  /** Processor time per time since the last look. */
  cores(stats) {
    if (stats.cpu_us === null) return null;
    const now = performance.now();
    const before = this.cpu;
    this.cpu = { at: now, us: stats.cpu_us };
    return before && now > before.at ? Math.max(0, (stats.cpu_us - before.us) / 1000 / (now - before.at)) : 0;
  }

  /** A run that is over. @param {any} usage @param {any} limits */
  showUsage(usage, limits) {
    const done = (name, value, limit, say) => ({ name, value, limit: limit || null, say, isLive: false });
    const list = [];
    if (usage.mem_peak_bytes) list.push(done("Memory, at most", usage.mem_peak_bytes, limits?.mem_bytes, size));
    if (usage.wall_ms !== undefined) list.push(done("Time", usage.wall_ms, limits?.command_ms, duration));
    if (usage.cpu_ms !== undefined && usage.cpu_ms !== null) list.push(done("Processor time", usage.cpu_ms, limits?.budget_ms, duration));
    const bytes = (usage.stdout_bytes ?? 0) + (usage.stderr_bytes ?? 0);
    if (usage.stdout_bytes !== undefined) list.push(done("Output", bytes, limits?.output_bytes, size));
    this.show(list);
  }
}
