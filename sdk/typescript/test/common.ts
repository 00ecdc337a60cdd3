/** What the tests share: a folder of their own, the built program, a look at processes. */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { type OpenOptions, Sandbox } from "caisson";

/** A fresh folder that nobody else may enter. */
export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "caisson-ts-"));

/** The same, removed when the test that asks is over. */
export async function folder(): Promise<string> {
  const path = await newFolder();
  after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A sandbox with a fresh workspace, closed at the end. */
export async function sandbox(options: OpenOptions & { mode?: string } = {}): Promise<Sandbox> {
  const { mode = "rw", ...rest } = options;
  const opened = await Sandbox.open({ workspace: `${await folder()}:${mode}`, noRecord: true, ...rest });
  after(() => opened.close());
  return opened;
}

/** Processes whose argument list holds this text. */
export async function processesWith(text: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const words = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (words.includes(text)) found.push(Number(name));
  }
  return found;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until it is so, at most ten seconds. */
export async function until(what: () => Promise<boolean> | boolean): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await what())) {
    if (Date.now() > end) throw new Error("it did not come true within 10 s");
    await sleep(20);
  }
}

let numbers = 0;

/** Seconds to sleep that no other process sleeps. */
export const oddSeconds = (): string => `${90_000_000 + (process.pid % 100_000) * 100 + numbers++}`;
