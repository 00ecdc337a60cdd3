/** Tells the stories of sdk/conformance to a sandbox and compares what it answers. */

import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { CaissonError, PolicyRefused, type Command, type ExecResult, Sandbox } from "caisson";
import { bytesOf, textOf } from "../dist/term.js";
import { newFolder } from "./common.js";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Fields = { [key: string]: Json };
type Row = { name: string; call: string; args?: Fields; result?: Fields; error?: Fields; meanwhile?: Fields };
type Told = { schema: string; about: string; workspace?: Fields; host?: Fields; policy?: string; open?: Fields; rows: Row[] };
type Args = any; // whatever the table says; what is wrong with it is the sandbox's to say

const stories = fileURLToPath(new URL("../../conformance/", import.meta.url));

// ---- values --------------------------------------------------------------------------------------

const isFields = (item: Json): item is Fields => typeof item === "object" && item !== null && !Array.isArray(item) && !Buffer.isBuffer(item);
const isValue = (item: Json): boolean => typeof item === "string" || (isFields(item) && ["base64", "repeat", "join"].some((key) => key in item));

function data(value: Json): Buffer {
  if (typeof value === "string") return Buffer.from(value, "utf8");
  assert.ok(isFields(value));
  if ("base64" in value) return Buffer.from(value["base64"] as string, "base64");
  if ("repeat" in value) return Buffer.concat(Array<Buffer>(value["times"] as number).fill(data(value["repeat"] as Json)));
  return Buffer.concat((value["join"] as Json[]).map(data));
}

const CONTENTS = new Set(["bytes", "old", "new", "stdin"]);

/** Arguments: contents as bytes, all other texts as strings, names in camelCase. */
function ready(item: Json, key = ""): unknown {
  if (isValue(item)) return CONTENTS.has(key) ? data(item) : textOf(data(item));
  if (Array.isArray(item)) return item.map((each) => ready(each));
  if (!isFields(item)) return item;
  const name = (word: string): string => (key === "env" ? word : word.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()));
  return Object.fromEntries(Object.entries(item).map(([word, value]) => [name(word), ready(value, word)]));
}

function replaced(item: Json, places: Record<string, string>): Json {
  if (typeof item === "string") return Object.entries(places).reduce((text, [name, path]) => text.replaceAll(`{${name}}`, path), item);
  if (Array.isArray(item)) return item.map((each) => replaced(each, places));
  return isFields(item) ? Object.fromEntries(Object.entries(item).map(([key, value]) => [key, replaced(value, places)])) : item;
}

// ---- comparing -----------------------------------------------------------------------------------

const asBytes = (found: unknown): Buffer => (Buffer.isBuffer(found) ? found : bytesOf(String(found)));
const show = (found: unknown): string => (JSON.stringify(found) ?? "undefined").slice(0, 300);

const matchers: Record<string, (expected: Json, found: unknown, where: string) => void> = {
  contains: (expected, found, where) => {
    const isIn = Array.isArray(found) ? found.some((item) => isLike(expected, item, where)) : asBytes(found).includes(data(expected));
    assert.ok(isIn, `${where}: ${show(expected)} is not in ${show(found)}`);
  },
  length: (expected, found, where) => assert.equal(Array.isArray(found) ? found.length : asBytes(found).length, expected, where),
  at_least: (expected, found, where) => assert.ok((found as number) >= (expected as number), `${where}: ${show(found)}`),
  at_most: (expected, found, where) => assert.ok((found as number) <= (expected as number), `${where}: ${show(found)}`),
};

function isLike(expected: Json, found: unknown, where: string): boolean {
  try {
    compare(expected, found, where);
    return true;
  } catch {
    return false;
  }
}

function compare(expected: Json, found: unknown, where: string): void {
  if (isValue(expected)) {
    assert.ok(found !== null && found !== undefined && asBytes(found).equals(data(expected)), `${where}: ${show(expected)} expected, found ${show(found)}`);
  } else if (isFields(expected)) {
    for (const [key, value] of Object.entries(expected)) {
      const matcher = matchers[key];
      if (matcher) matcher(value, found, where);
      else compare(value, (found as Fields)[key], `${where}.${key}`);
    }
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(found) && found.length === expected.length, `${where}: found ${show(found)}`);
    expected.forEach((item, i) => compare(item, (found as unknown[])[i], `${where}[${i}]`));
  } else {
    assert.equal(found, expected, where);
  }
}

/** A result as the table names it. */
function snaked(item: unknown): unknown {
  if (Array.isArray(item)) return item.map(snaked);
  if (typeof item !== "object" || item === null || Buffer.isBuffer(item)) return item;
  return Object.fromEntries(Object.entries(item).map(([key, value]) => [key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), snaked(value)]));
}

// ---- calling -------------------------------------------------------------------------------------

function account(done: ExecResult): object {
  const { stdout, stderr, exitCode, signal, stdoutCut, stderrCut, termination, usage, violations, outputCut } = done;
  return {
    ...termination, stdout, stderr, exitCode, signal, stdoutCut, stderrCut,
    stdoutBytes: usage.stdoutBytes,
    stderrBytes: usage.stderrBytes,
    outputCutBytes: outputCut,
    detached: termination.reason === "detached",
    events: violations.filter(({ expected }) => !expected).map(({ event }) => event),
  };
}

async function exec(box: Sandbox, args: Args, meanwhile: Fields | undefined): Promise<object> {
  const { command, argv, detach, tty, rows = 24, cols = 80, keepBytes, ...rest } = args;
  const what = (command ?? argv) as Command;
  const options = { ...rest, keep: keepBytes as number | undefined, tty: tty ? { rows, columns: cols } : undefined };
  if (detach) return account(await box.start(what, rest));
  if (!meanwhile) return account(await box.exec(what, options));
  const stream = box.stream(what, options);
  let seen = Buffer.alloc(0);
  let isDue = true;
  for await (const piece of stream) {
    seen = Buffer.concat([seen, piece.data]);
    if (!isDue || !seen.includes(data(meanwhile["after"] ?? ""))) continue;
    isDue = false;
    if (meanwhile["cancel"]) stream.cancel();
    else stream.signal(meanwhile["signal"] as number);
  }
  return account(await stream.result());
}

const calls: Record<string, (box: Sandbox, args: Args) => Promise<unknown>> = {
  ps: async (box) => ({ commands: await box.ps() }),
  logs: async (box, { tag, ...options }) => {
    const { cut, ...done } = await box.logs(tag, options);
    return { ...done, cutBytes: cut };
  },
  wait: (box, { tag, ...options }) => box.wait(tag, options),
  kill: (box, { tag, signal }) => box.kill(tag, signal),
  read: async (box, { path, ...options }) => ({ bytes: await box.read(path, options) }),
  write: (box, { path, bytes, ...options }) => box.write(path, bytes ?? "", options),
  edit: (box, { path, old, new: replacement, ...options }) => box.edit(path, old, replacement, options),
  stat: (box, { path }) => box.stat(path),
  list: (box, { path }) => box.list(path),
  remove: (box, { path, ...options }) => box.remove(path, options),
  move: (box, { path, to }) => box.move(path, to),
  glob: (box, { pattern, ...options }) => box.glob(pattern, options),
  grep: (box, { pattern, ...options }) => box.grep(pattern, options),
  mount: (box, { host, at, ...options }) => box.mount(host, at, options),
  diff: (box, args) => box.diff(args),
  commit: (box, args) => box.commit(args),
  snapshot: (box, { tag }) => box.snapshot(tag),
  fork: (box, { name, ...options }) => box.fork(name, options),
  stats: (box) => box.stats(),
  verbs: async (box, { names }) => ({ has: names.map((name: string) => box.hasVerb(name)) }),
};

class Story {
  readonly places: Record<string, string> = {};
  box!: Sandbox;
  private folder = "";

  constructor(readonly told: Told) {}

  async begin(): Promise<void> {
    this.folder = await newFolder();
    for (const name of ["workspace", "host"] as const) {
      const place = (this.places[name] = join(this.folder, name));
      await mkdir(place, { mode: 0o700 });
      for (const [file, content] of Object.entries(this.told[name] ?? {})) {
        await mkdir(dirname(join(place, file)), { recursive: true });
        await writeFile(join(place, file), data(content));
      }
    }
    this.box = await this.open(this.told.open ?? {});
  }

  async end(): Promise<void> {
    await this.box.close();
    await rm(this.folder, { recursive: true });
  }

  async open(options: Fields): Promise<Sandbox> {
    const { mode, ...more } = ready(replaced({ no_record: true, ...options }, this.places)) as Record<string, unknown>;
    if (mode !== undefined) more["workspace"] = `${this.places["workspace"]}:${String(mode)}`;
    if (this.told.policy !== undefined && !("policy" in more)) {
      const policy = join(this.folder, "policy.yaml");
      await writeFile(policy, replaced(this.told.policy, this.places) as string);
      more["policy"] = policy;
    }
    return Sandbox.open(more);
  }

  async answer(row: Row): Promise<unknown> {
    if (row.call === "open") return void (await (await this.open(row.args ?? {})).close());
    const args = ready(replaced(row.args ?? {}, this.places)) as Args;
    if (row.call === "exec") return snaked(await exec(this.box, args, row.meanwhile));
    const call = calls[row.call];
    assert.ok(call, `there is no call ${row.call}`);
    return snaked(await call(this.box, args));
  }

  async check(row: Row): Promise<void> {
    let found: unknown;
    try {
      found = await this.answer(row);
    } catch (error) {
      if (!(error instanceof CaissonError) || !row.error) throw error;
      const { says, ...expected } = row.error;
      compare(expected, { code: error.code, stage: error.stage, refused: error instanceof PolicyRefused }, row.name);
      if (says !== undefined) assert.ok(error.message.includes(says as string), `${row.name}: ${error.message}`);
      return;
    }
    assert.ok(!row.error, `${row.name}: it succeeded`);
    compare(row.result ?? {}, found, row.name);
  }
}

const files = (await readdir(stories)).filter((name) => name.endsWith(".json")).sort();
assert.ok(files.length > 0, `there are no stories in ${stories}`);
for (const file of files) {
  const told = JSON.parse(await readFile(join(stories, file), "utf8")) as Told;
  assert.equal(told.schema, "caisson.conformance/1");
  describe(`${file}: ${told.about}`, () => {
    const story = new Story(told);
    before(() => story.begin());
    after(() => story.end());
    for (const row of told.rows) test(row.name, () => story.check(row));
  });
}
