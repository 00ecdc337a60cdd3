/*
 * The page: what is up and what ran on the left, one record on the right.
 *
 * It only reads. The address says what is shown (#sandbox/NAME, #run/ID); lists are asked for again
 * every two seconds while somebody looks, a record is a stream that is let go while nobody does:
 * browsers have six connections to a server for all their windows.
 */
import { ask, askText, follow, forgetToken, Problem, setToken, takeToken } from "./api.js";
import { Diff } from "./diff.js";
import { Events } from "./events.js";
import { Plots } from "./plots.js";
import { byId, commandText, duration, element, endText, setText, since, size, textOf } from "./text.js";

const LISTS_MS = 2000;
const STATS_MS = 1000;
const NEWS_MS = 1500;
const VIOLATIONS_MAX = 500; /* shown; more are counted */
const TABS = ["events", "violations", "changes", "proof"];

const state = {
  sandboxes: [],
  runs: [],
  older: [],
  /** @type {{kind: string, id: string} | null} */
  chosen: null,
  /** of the chosen one */
  runId: "",
  sandbox: null,
  run: null,
  limits: null,
  violations: 0,
  news: [],
  tab: "events",
  isProven: false,
  stop: new AbortController(),
};

const events = new Events({ onViolation, onEvent });
const plots = new Plots(byId("plots"));
const diff = new Diff();

/* ---- lists ---------------------------------------------------------------------------------- */

/** Lines by key: those that stay keep their element, and with it the focus. */
function showRows(list, items, keyOf, draw) {
  const known = new Map([...list.children].map((node) => [node.dataset.key, node]));
  items.forEach((item, at) => {
    const key = keyOf(item);
    const node = known.get(key) ?? newRow(key);
    known.delete(key);
    draw(node.firstChild, item);
    if (list.children[at] !== node) list.insertBefore(node, list.children[at] ?? null);
  });
  for (const node of known.values()) node.remove();
}

function newRow(key) {
  const row = element("li", {}, element("a", {}, element("span", { class: "row-name" }), element("span", { class: "row-state" }),
    element("span", { class: "row-more quiet" })));
  row.dataset.key = key;
  return row;
}

/** @param {HTMLAnchorElement} link */
function drawRow(link, row) {
  const isChosen = state.chosen?.kind === row.kind && state.chosen.id === row.id;
  link.setAttribute("href", `#${row.kind}/${encodeURIComponent(row.id)}`);
  if (isChosen) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
  setText(link.children[0], row.name);
  setText(link.children[1], row.state);
  link.children[1].className = `row-state is-${row.mood}`;
  setText(link.children[2], row.more);
}

function drawSandbox(link, box) {
  const use = box.stats?.mem_bytes ? `${size(box.stats.mem_bytes)}${box.stats.mem_limit ? ` of ${size(box.stats.mem_limit)}` : ""}` : "";
  const commands = box.stats?.commands ? `${box.stats.commands} running` : "";
  drawRow(link, { kind: "sandbox", id: box.name, name: box.name, state: box.state, mood: box.state,
    more: [commands, use, box.owner === "user" ? "of caisson up" : ""].filter(Boolean).join(" · ") });
}

function runState(run) {
  if (run.status !== "finished") return { state: run.status, mood: run.status === "running" ? "busy" : "bad" };
  const isGood = run.termination?.reason === "exited" && run.termination.exit_code === 0;
  return { state: endText(run.termination), mood: isGood ? "idle" : "bad" };
}

function drawRun(link, run) {
  const count = run.violations ? `${run.violations} violation${run.violations === 1 ? "" : "s"}` : "";
  drawRow(link, { kind: "run", id: run.run_id, name: commandText(run.command) || "a sandbox", ...runState(run),
    more: [since(Date.parse(run.started)), count].filter(Boolean).join(" · ") });
}

function showLists() {
  const runs = [...state.runs, ...state.older];
  showRows(byId("boxes"), state.sandboxes, (box) => box.name, drawSandbox);
  showRows(byId("runs"), runs, (run) => run.run_id, drawRun);
  byId("no-boxes").hidden = state.sandboxes.length > 0;
  byId("no-runs").hidden = runs.length > 0;
  byId("older").hidden = runs.length === 0 || runs.length % 50 !== 0;
}

async function readLists() {
  const [boxes, runs] = await Promise.all([ask("/v1/sandboxes"), ask("/v1/runs?limit=50")]);
  const last = runs.runs.at(-1)?.run_id ?? "";
  state.sandboxes = boxes.sandboxes;
  state.runs = runs.runs;
  state.older = state.older.filter((run) => run.run_id < last);
  showLists();
  noteRun(runs.runs.find((run) => run.run_id === state.runId));
}

async function readOlder() {
  const last = [...state.runs, ...state.older].at(-1);
  const more = await ask(`/v1/runs?limit=50&before=${encodeURIComponent(last.run_id)}`);
  state.older.push(...more.runs);
  showLists();
  if (more.runs.length === 0) byId("older").hidden = true;
}

/* ---- one record ----------------------------------------------------------------------------- */

/** @param {[string, string | undefined | null][]} facts */
function showFacts(facts) {
  const wanted = facts.filter(([, value]) => value);
  const list = byId("facts");
  if (list.dataset.now === JSON.stringify(wanted)) return;
  list.dataset.now = JSON.stringify(wanted);
  list.replaceChildren(...wanted.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function showHead() {
  const { chosen, run, sandbox } = state;
  const stats = sandbox?.stats;
  const result = run?.result;
  const mount = result?.mounts?.find((each) => each.workspace);
  const means = sandbox ? sandbox.state : run ? runState(run).state : "";
  setText(byId("title"), chosen.kind === "sandbox" ? chosen.id : commandText(run?.command) ? "Run" : "Record of a sandbox");
  setText(byId("command"), commandText(run?.command));
  byId("command").hidden = !commandText(run?.command);
  showFacts([
    ["State", means],
    ["Wall", stats ? `${stats.tier}, ${stats.backend}` : result?.runtime ?? run?.runtime],
    ["Workspace", stats ? `${textOf(stats.workspace)} (${stats.mode})` : mount ? `${textOf(mount.host)} (${mount.mode})` : ""],
    ["Network", result?.network],
    ["Started", stats ? since(stats.started_ms) : run ? since(Date.parse(run.started)) : ""],
    ["Took", run?.usage ? duration(run.usage.wall_ms) : ""],
    ["Error", result?.error ? textOf(result.error.text ?? result.error) : ""],
    ["Record", state.runId],
  ]);
}

/** What the list says of the chosen run: it may have ended meanwhile. */
function noteRun(row) {
  if (!row || !state.chosen || state.run?.status === row.status) return;
  readRun().catch(onProblem);
}

async function readRun() {
  const id = state.runId;
  if (!id) return;
  const run = await ask(`/v1/runs/${id}`, { signal: state.stop.signal });
  if (id !== state.runId) return;
  state.run = run;
  if (run.result?.usage) plots.showUsage(run.result.usage, run.result.limits);
  if (run.status !== "running") prove().catch(onProblem);
  showHead();
}

async function readSandbox() {
  const { chosen } = state;
  if (chosen?.kind !== "sandbox") return;
  try {
    const sandbox = await ask(`/v1/sandboxes/${encodeURIComponent(chosen.id)}`, { signal: state.stop.signal });
    if (chosen !== state.chosen) return;
    state.sandbox = sandbox;
    if (sandbox.stats) plots.showStats(sandbox.stats, state.limits);
    showHead();
  } catch (problem) {
    if (!(problem instanceof Problem) || (problem.status !== 404 && problem.status !== 410)) throw problem;
    state.sandbox = { state: "ended", stats: null };
    showHead();
  }
}

function onEvent(event) {
  if (event.event === "RunStarted") state.limits = event.payload.limits ?? null;
  if (event.event === "RunExited") setTimeout(() => readRun().catch(onProblem), 300);
}

function startStream() {
  const { runId } = state;
  const { signal } = state.stop;
  if (!runId || document.hidden) return;
  follow(`/v1/runs/${runId}/events`, {
    signal,
    after: events.last,
    onRecord: (data, seq) => { if (!signal.aborted) events.add(data, seq); },
    onState: (isLive) => showLink(isLive ? "" : "Connection lost, trying again"),
    onProblem,
  });
}

async function choose() {
  const named = /^#(sandbox|run)\/(.+)$/.exec(location.hash);
  state.stop.abort();
  state.stop = new AbortController();
  let id = "";
  try {
    id = named ? decodeURIComponent(named[2]) : "";
  } catch { /* not one of our addresses */ }
  Object.assign(state, { chosen: id ? { kind: named[1], id } : null, runId: "", sandbox: null, run: null, limits: null,
    violations: 0, news: [], isProven: false });
  document.body.classList.toggle("has-record", Boolean(id));
  byId("record").hidden = !id;
  byId("empty").hidden = Boolean(id);
  events.clear();
  plots.clear();
  byId("violations").replaceChildren();
  setText(byId("proof"), "");
  diff.show("", "");
  showViolationCount();
  showLists();
  if (!id) return;
  document.title = `${id} · Caisson`;
  if (state.chosen.kind === "run") state.runId = id;
  else await readSandbox();
  state.runId ||= state.sandbox?.run_id ? textOf(state.sandbox.run_id) : "";
  showHead();
  showTab(state.tab);
  startStream();
  await readRun();
}

/* ---- violations ----------------------------------------------------------------------------- */

function showViolationCount() {
  const tab = byId("tab-violations");
  setText(tab, state.violations ? `Violations ${state.violations}` : "Violations");
  tab.classList.toggle("has-some", state.violations > 0);
  byId("no-violations").hidden = state.violations > 0;
}

function onViolation(violation, isNew) {
  const detail = Object.entries(violation.detail ?? {}).map(([key, value]) => `${key} ${textOf(value)}`).join(", ");
  const times = violation.count > 1 ? `${violation.count} times` : "";
  state.violations++;
  if (state.violations <= VIOLATIONS_MAX)
    byId("violations").append(element("li", { class: violation.certain ? "is-certain" : "" },
      element("p", { class: "violation-says" }, textOf(violation.say)),
      element("p", { class: "violation-rule" }, element("span", { class: "quiet" }, "rule "), element("code", {}, textOf(violation.rule))),
      element("p", { class: "quiet violation-more" }, [textOf(violation.event).replace(/Violation$/, ""), textOf(violation.comm), detail,
        `seen by ${textOf(violation.source)}`, times, violation.certain ? "" : "may have had another cause too"].filter(Boolean).join(" · "))));
  showViolationCount();
  if (isNew) tellNews(textOf(violation.say));
}

/** Politely, and many at once as one sentence. */
function tellNews(sentence) {
  state.news.push(sentence);
  if (state.news.length > 1) return;
  setTimeout(() => {
    const [first] = state.news;
    const more = state.news.length - 1;
    if (first) setText(byId("news"), more ? `${more + 1} new violations. The first: ${first}` : `Violation: ${first}`);
    state.news = [];
  }, NEWS_MS / 3);
}

/* ---- changes, verification ------------------------------------------------------------------ */

async function readChanges() {
  const { chosen, sandbox } = state;
  const { signal } = state.stop;
  if (!chosen) return;
  diff.show("", "Reading …");
  try {
    if (sandbox?.stats) {
      const told = await ask(`/v1/sandboxes/${encodeURIComponent(chosen.id)}/diff`, { method: "POST", json: { keep_bytes: 4 << 20 }, signal });
      const cut = told.truncated || told.text.cut_bytes > 0 ? ", not all shown" : "";
      diff.show(textOf(told.text.data), `${told.changes.length} changed${cut}`);
    } else {
      const text = await askText(`/v1/runs/${state.runId}/diff`, { signal });
      diff.show(text, text ? "What the run changed" : "Nothing was changed.");
    }
  } catch (problem) {
    if (signal.aborted) return;
    if (!(problem instanceof Problem) || problem.status === 401) throw problem;
    diff.show("", problem.message);
  }
}

async function prove() {
  const id = state.runId;
  const proof = byId("proof");
  if (!id || state.isProven) return;
  if (state.run?.status === "running") {
    proof.className = "proof";
    setText(proof, "It is still being written: the record is sealed when it ends.");
    return;
  }
  state.isProven = true;
  const told = await ask(`/v1/runs/${id}/verify`, { signal: state.stop.signal });
  if (id !== state.runId) return;
  proof.className = `proof ${told.good ? "is-good" : "is-bad"}`;
  setText(proof, told.good ? "Intact: the hash chain, the manifest and the head agree."
    : `Not intact: ${textOf(told.file)}${told.line ? `, line ${told.line}` : ""}: ${textOf(told.reason)}`);
  byId("tab-proof").className = told.good ? "is-good" : "is-bad";
}

/* ---- tabs, keys, the link ------------------------------------------------------------------- */

function showTab(name) {
  state.tab = name;
  for (const each of TABS) {
    const isShown = each === name;
    byId(`tab-${each}`).setAttribute("aria-selected", String(isShown));
    byId(`tab-${each}`).tabIndex = isShown ? 0 : -1;
    byId(`panel-${each}`).hidden = !isShown;
  }
  if (name === "changes") readChanges().catch(onProblem);
  if (name === "proof") prove().catch(onProblem);
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const at = { Home: 0, End: TABS.length - 1 }[event.key] ?? (step && (TABS.indexOf(state.tab) + step + TABS.length) % TABS.length);
  if (at === undefined) return;
  event.preventDefault();
  showTab(TABS[at]);
  byId(`tab-${TABS[at]}`).focus();
}

function showLink(text) {
  setText(byId("link"), text);
}

/** @param {unknown} problem */
function onProblem(problem) {
  if (problem instanceof DOMException && problem.name === "AbortError") return;
  if (!(problem instanceof Problem)) throw problem;
  if (problem.status === 401) {
    forgetToken();
    byId("token").hidden = false;
    byId("columns").hidden = true;
  }
  showLink(problem.status === 401 ? "The token is not this server's" : problem.message);
}

/** Asks again and again, less often while nobody answers, and not while nobody looks. */
async function repeat(work, everyMs) {
  let wait = everyMs;
  for (;;) {
    if (!document.hidden && byId("token").hidden) {
      try {
        await work();
        if (wait > everyMs) showLink("");
        wait = everyMs;
      } catch (problem) {
        onProblem(problem);
        wait = Math.min(wait * 2, 10_000);
      }
    }
    await new Promise((done) => { setTimeout(done, wait); });
  }
}

async function greet() {
  const server = await ask("/v1");
  byId("token").hidden = true;
  byId("columns").hidden = false;
  showLink("");
  setText(byId("version"), textOf(server.version));
  await readLists();
  await choose();
}

function listen() {
  addEventListener("hashchange", () => {
    if (takeToken()) greet().catch(onProblem);
    else choose().catch(onProblem);
  });
  document.addEventListener("visibilitychange", () => {
    state.stop.abort();
    state.stop = new AbortController();
    startStream();
  });
  byId("token").addEventListener("submit", (event) => {
    const input = /** @type {HTMLInputElement} */ (byId("token-text"));
    event.preventDefault();
    setToken(input.value.trim().replace(/^.*#token=/, ""));
    input.value = "";
    greet().catch(onProblem);
  });
  byId("skip").addEventListener("click", () => byId("main").focus());
  byId("older").addEventListener("click", () => readOlder().catch(onProblem));
  byId("changes-again").addEventListener("click", () => readChanges().catch(onProblem));
  byId("prove").addEventListener("click", () => {
    state.isProven = false;
    prove().catch(onProblem);
  });
  for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => showTab(name));
  document.querySelector("[role=tablist]").addEventListener("keydown", onTabKey);
}

takeToken();
listen();
await greet().catch(onProblem);
repeat(readLists, LISTS_MS);
repeat(readSandbox, STATS_MS);
