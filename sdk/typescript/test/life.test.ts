import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import * as caisson from "caisson";
import { Sandbox } from "caisson";
import { folder, oddSeconds, processesWith, sandbox, until } from "./common.js";

const index = fileURLToPath(new URL("../dist/index.js", import.meta.url));

/** A program of its own that opens a sandbox at `path` and goes on with `text`. */
function program(path: string, text: string): string[] {
  return ["--input-type=module", "-e", `
    import { Sandbox } from ${JSON.stringify(index)};
    const box = await Sandbox.open({ workspace: ${JSON.stringify(path)}, noRecord: true });
    ${text}`];
}

const said = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => child.stdout?.once("data", (data: Buffer) => resolve(data.toString())));

describe("a host", () => {
  for (const signal of ["SIGKILL", "SIGTERM", "SIGINT"] as const) {
    test(`that ${signal} ends leaves nothing`, async () => {
      const seconds = oddSeconds();
      const path = await folder();
      const text = `await box.start("sleep ${seconds}", { tag: "t" }); void box.exec("sleep ${seconds}"); console.log(process.pid)`;
      const child = spawn(process.execPath, program(path, text), { stdio: ["ignore", "pipe", "inherit"] });
      await said(child);
      await until(async () => (await processesWith(seconds)).filter((pid) => pid !== child.pid).length >= 2);
      child.kill(signal);
      await until(async () => (await processesWith(seconds)).length === 0);
    });
  }

  test("is not kept alive by a sandbox, and leaves none", async () => {
    const seconds = oddSeconds();
    const path = await folder();
    const text = `await box.start("sleep ${seconds}", { tag: "t" });`;
    const done = spawnSync(process.execPath, program(path, text), { timeout: 10_000, encoding: "utf8" });
    assert.deepEqual([done.status, done.signal, done.stderr], [0, null, ""]);
    await until(async () => (await processesWith(seconds)).length === 0);
  });

  test("is kept alive by a call", async () => {
    const path = await folder();
    const text = 'void box.exec("sleep 0.3; echo over").then((result) => console.log(result.text));';
    const done = spawnSync(process.execPath, program(path, text), { timeout: 10_000, encoding: "utf8" });
    assert.deepEqual([done.status, done.stdout.trim()], [0, "over"]);
  });
});

describe("a monitor", () => {
  test("that is killed loses the sandbox for all calls", async () => {
    const box = await sandbox();
    const seconds = oddSeconds();
    const running = [box.exec(`sleep ${seconds}`), box.start("sleep 60", { tag: "t" }).then(() => box.wait("t"))];
    const outcomes = Promise.allSettled(running);
    await until(async () => (await processesWith(seconds)).length > 0);
    process.kill(youngestPort(), "SIGKILL");
    for (const outcome of await outcomes) {
      assert.equal(outcome.status, "rejected");
      assert.ok(outcome.reason instanceof caisson.Lost, String(outcome.reason));
      assert.match(outcome.reason.message, /killed/);
    }
    await assert.rejects(box.read("x"), caisson.Lost);
    await until(async () => (await processesWith(seconds)).length === 0);
    assert.equal((await box.close()).reason, "lost");
  });

  test("that is not there: how to get one", async () => {
    await assert.rejects(Sandbox.open({ program: "/no/such/caisson" }), (error) => {
      assert.ok(error instanceof caisson.NotInstalled);
      assert.match(error.message, /\/no\/such\/caisson.*PATH.*program.*\$CAISSON/);
      return true;
    });
    const path = await folder();
    const text = `import { Sandbox } from ${JSON.stringify(index)}; await Sandbox.open().catch((error) => console.log(error.name))`;
    const done = spawnSync(process.execPath, ["--input-type=module", "-e", text], { env: { PATH: path }, encoding: "utf8" });
    assert.equal(done.stdout, "NotInstalled\n");
  });

  /** Programs that are no caisson, or another one. */
  const other = async (bytes: string): Promise<string> => {
    const path = join(await folder(), "caisson");
    await writeFile(path, `#!/bin/sh\nprintf '${bytes}'\ncat >/dev/null\n`, { mode: 0o755 });
    return path;
  };

  test("of another version: both are named", async () => {
    const hex = (text: string): string => [...Buffer.from(text, "latin1")].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
    const key = (name: string): string => `w${String.fromCharCode(name.length)}${name}`;
    const term = `\x83h\x03${key("reply")}a\x01t\0\0\0\x02${key("caisson")}m\0\0\0\x059.9.9${key("protocol")}a\x02`;
    const frame = `\0\0\0${String.fromCharCode(term.length)}${term}`;
    await assert.rejects(Sandbox.open({ program: await other(hex(frame)) }), (error) => {
      assert.ok(error instanceof caisson.VersionMismatch, String(error));
      assert.match(error.message, /9\.9\.9.*version 2 .*version 1/);
      return true;
    });
  });

  test("that is something else", async () => {
    await assert.rejects(Sandbox.open({ program: await other("hello there\\n") }), (error) => {
      assert.ok(error instanceof caisson.Lost);
      assert.match(error.message, /broke the protocol/);
      return true;
    });
    await assert.rejects(Sandbox.open({ program: "/bin/false" }), caisson.Lost);
    await assert.rejects(Sandbox.open({ program: "/etc/passwd" }), caisson.CaissonError);
  });

  test("that never answers", async () => {
    await assert.rejects(Sandbox.open({ program: await other(""), startTimeoutMs: 100 }), caisson.Timeout);
    await assert.rejects(Sandbox.open({ program: await other(""), signal: AbortSignal.timeout(100) }), caisson.Cancelled);
  });
});

/** The monitor that was started last. */
function youngestPort(): number {
  const done = spawnSync("ps", ["--ppid", String(process.pid), "-o", "pid=,args="], { encoding: "utf8" });
  const lines = done.stdout.split("\n").filter((line) => line.endsWith(" port"));
  return Number.parseInt(lines.at(-1) ?? "", 10);
}
