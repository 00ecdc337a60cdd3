import assert from "node:assert/strict";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import * as caisson from "caisson";
import { Sandbox, type Violation } from "caisson";
import { folder, sandbox } from "./common.js";

describe("commands", () => {
  test("an account of one that went well", async () => {
    const box = await sandbox();
    const result = await box.exec("echo out; echo err >&2");
    assert.equal(result.stdout.toString(), "out\n");
    assert.equal(result.stderr.toString(), "err\n");
    assert.equal(result.output.length, 8);
    assert.equal(result.termination.reason, "exited");
    assert.equal(result.exitCode, 0);
    assert.equal(result.signal, null);
    assert.ok(result.ok);
    assert.equal(result.usage.stdoutBytes, 4);
    assert.ok(result.usage.wallUs > 0);
  });

  test("words are not a shell's", async () => {
    const box = await sandbox();
    assert.equal((await box.exec(["echo", "$HOME; x"])).stdout.toString(), "$HOME; x\n");
  });

  test("a status, a signal, a missing program are results", async () => {
    const box = await sandbox();
    const [status, killed, missing] = await Promise.all([box.exec("exit 3"), box.exec("kill -9 $$"), box.exec(["/no/such"])]);
    assert.deepEqual([status.exitCode, status.ok], [3, false]);
    assert.deepEqual([killed.termination.reason, killed.signal], ["signaled", 9]);
    assert.deepEqual([missing.termination.reason, missing.termination.error], ["start_failed", "enoent"]);
  });

  test("a timeout is a result", async () => {
    const box = await sandbox();
    const result = await box.exec("echo begun; sleep 60", { timeoutMs: 300 });
    assert.deepEqual([result.termination.reason, result.termination.clock], ["timeout", "command"]);
    assert.equal(result.stdout.toString(), "begun\n");
  });

  test("environment, folder, input", async () => {
    const box = await sandbox({ env: { LENT: "a b" } });
    const result = await box.exec('echo "$LENT $MORE"; pwd; cat', { env: { MORE: "c=d" }, cwd: "/tmp", stdin: "typed" });
    assert.equal(result.text, "a b c=d\n/tmp\ntyped");
  });

  test("input as it comes, larger than any window", async () => {
    const box = await sandbox();
    const pieces = async function* (): AsyncGenerator<Buffer> {
      for (let i = 0; i < 20; i++) yield Buffer.alloc(100_000, "x");
    };
    assert.equal((await box.exec("wc -c", { stdin: pieces() })).text.trim(), "2000000");
    assert.equal((await box.exec("head -c 3", { stdin: pieces() })).text, "xxx");
  });

  test("of much output both ends are kept", async () => {
    const box = await sandbox();
    const result = await box.exec("seq 100000", { keep: 1000 });
    assert.equal(result.stdout.length, 1000);
    assert.equal(result.stdoutCut, 588_895 - 1000);
    assert.match(result.stdout.toString(), /^1\n2\n[^]*\n100000\n$/);
    assert.equal((await box.exec("echo all")).stdoutCut, 0);
    assert.equal((await box.exec("echo none", { keep: 0 })).stdoutCut, 5);
  });

  test("violations, as they come and in the account", async () => {
    const seen: Violation[] = [];
    const all: Violation[] = [];
    const box = await sandbox({ onViolation: (violation) => all.push(violation) });
    const result = await box.exec("exec 3<>/dev/tcp/192.0.2.1/80", { onViolation: (violation) => seen.push(violation) });
    assert.equal(result.violations[0]?.event, "NetworkAccessViolation");
    assert.equal(result.violations[0]?.address, "192.0.2.1");
    assert.equal(result.violations[0]?.port, 80);
    assert.match(result.violations[0]?.say ?? "", /192\.0\.2\.1/);
    assert.deepEqual(seen.map((violation) => violation.event), ["NetworkAccessViolation"]);
    assert.deepEqual(all.map((violation) => violation.event), ["NetworkAccessViolation"]);
  });

  test("a callback that throws ends its command and no other", async () => {
    const box = await sandbox();
    const other = box.exec("sleep 0.3; echo other");
    const boom = new Error("boom");
    await assert.rejects(box.exec("echo x; sleep 60", { onOutput: () => Promise.reject(boom) }), boom);
    assert.equal((await other).text, "other\n");
  });

  test("ones that outlive their call", async () => {
    const box = await sandbox();
    const started = await box.start("echo ready; sleep 60", { tag: "server" });
    assert.equal(started.termination.reason, "detached");
    assert.ok(started.pid);
    const waited = await box.wait("server", { text: "ready", timeoutMs: 5000 });
    assert.deepEqual([waited.reached, waited.line?.toString()], [true, "ready"]);
    assert.deepEqual((await box.wait("server", { timeoutMs: 50 })).timedOut, true);
    assert.equal((await box.logs("server")).stdout.toString(), "ready\n");
    assert.deepEqual((await box.ps()).map(({ tag, state }) => [tag, state]), [["server", "running"]]);
    await box.kill("server", "SIGKILL");
    assert.equal((await box.wait("server")).signal, 9);
    let followed = "";
    for await (const { data } of box.follow("server")) followed += data.toString();
    assert.equal(followed, "ready\n");
    await assert.rejects(box.logs("nobody"), caisson.NotFound);
  });
});

describe("files", () => {
  test("are written, read, edited", async () => {
    const box = await sandbox();
    await box.write("a/b.txt", "one two");
    assert.equal(await box.readText("a/b.txt"), "one two");
    assert.equal((await box.read("a/b.txt", { offset: 4, length: 2 })).toString(), "tw");
    assert.equal((await box.edit("a/b.txt", "two", "three")).occurrences, 1);
    assert.equal((await box.edit("a/b.txt", "e", "x")).occurrences, 3);
    assert.equal(await box.readText("a/b.txt"), "one three");
    const { type, size, mode } = await box.stat("a/b.txt");
    assert.deepEqual([type, size, mode], ["file", 9, 0o644]);
    await box.move("a/b.txt", "c.txt");
    const { entries } = await box.list();
    assert.deepEqual(entries.filter(({ name }) => !name.startsWith(".")).map(({ name, type }) => [name, type]), [["a", "directory"], ["c.txt", "file"]]);
    await box.remove("a", { recursive: true });
    assert.deepEqual((await box.glob("**/*.txt")).paths, ["c.txt"]);
    const [match] = (await box.grep("THREE", { ignoreCase: true })).matches;
    assert.deepEqual([match?.path, match?.lineNumber, match?.line.toString()], ["c.txt", 1, "one three"]);
  });

  test("of any size", async () => {
    const box = await sandbox();
    const bytes = Buffer.alloc(3_000_000, "0123456789");
    await box.write("big", bytes);
    assert.ok((await box.read("big")).equals(bytes));
    let size = 0;
    for await (const piece of box.readPieces("big")) size += piece.length;
    assert.equal(size, bytes.length);
    for await (const piece of box.readPieces("big")) {
      size = piece.length;
      break;
    }
    await assert.rejects(box.read("/dev/zero"), caisson.Invalid);
  });

  test("with names that are no UTF-8", async () => {
    const box = await sandbox();
    await box.exec("touch $'na\\xffme'");
    const entry = (await box.list()).entries.find(({ name }) => name.startsWith("na"));
    assert.equal(entry?.name, "na\udcffme");
    assert.equal((await box.stat(entry?.name ?? "")).size, 0);
  });

  test("failures have their class, code and stage", async () => {
    const box = await sandbox();
    await box.exec("mkdir -p d/e");
    const failures: [() => Promise<unknown>, new (...words: never[]) => Error, string][] = [
      [() => box.read("none"), caisson.NotFound, "enoent"],
      [() => box.read("d"), caisson.IsADirectory, "eisdir"],
      [() => box.read("../../etc/passwd"), caisson.Invalid, "einval"],
      [() => box.remove("d"), caisson.NotEmpty, "enotempty"],
      [() => box.write("/etc/x", "y"), caisson.AccessDenied, "erofs"],
      [() => box.grep("("), caisson.InvalidPattern, "invalid_regex"],
      [() => box.diff(), caisson.NotSupported, "not_supported"],
      [() => box.read("x\0y"), caisson.Invalid, "invalid"],
      [() => box.exec("x".repeat(200_000)), caisson.Invalid, "invalid"],
      [() => box.exec(["x".repeat(6_000_000)]), caisson.TooLarge, "e2big"],
      [() => box.exec([1 as never]), caisson.Invalid, "invalid"],
      [() => box.read(undefined as never), caisson.Invalid, "invalid"],
      [() => box.exec("true", { timeoutMs: 1.5 }), caisson.Invalid, "invalid"],
    ];
    for (const [call, kind, code] of failures) {
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof kind, String(error));
        assert.ok(error instanceof caisson.CaissonError);
        assert.equal(error.code, code);
        assert.ok(error.stage && error.message);
        return true;
      });
    }
    assert.ok((await box.exec("true")).ok); // and the sandbox goes on
  });
});

describe("a copy of the workspace", () => {
  test("is told apart, kept, forked and written back", async () => {
    const path = await folder();
    await writeFile(join(path, "a.txt"), "old\n");
    const box = await sandbox({ workspace: `${path}:cow`, noRecord: false, runDir: await folder() });
    await box.exec("echo new >a.txt; echo b >b.txt");
    const diff = await box.diff();
    assert.deepEqual(diff.changes.map(({ path, change }) => [path, change]), [["a.txt", "modified"], ["b.txt", "added"]]);
    assert.match(diff.text.toString(), /^\+new$/m);
    assert.equal((await box.snapshot("first")).entries >= 2, true);
    assert.equal(await readFile(join(path, "a.txt"), "utf8"), "old\n");
    const done = await box.commit({ paths: ["a.txt"] });
    assert.deepEqual(done.applied.map(({ path }) => path), ["a.txt"]);
    assert.equal(await readFile(join(path, "a.txt"), "utf8"), "new\n");
    const name = `ts-fork-${process.pid}`;
    await box.fork(name, { tag: "first" });
    const other = await Sandbox.attach(name);
    try {
      assert.equal(await other.readText("b.txt"), "b\n");
    } finally {
      await other.exec("true");
      await other.close();
      const { execFileSync } = await import("node:child_process");
      execFileSync(process.env["CAISSON"] ?? "caisson", ["down", name]);
    }
  });
});

describe("opening", () => {
  test("says what there is", async () => {
    const box = await sandbox({ limits: { memory: "256MiB", processes: 64 }, tags: ["t"] });
    assert.equal(box.info.mode, "rw");
    assert.ok(box.hasVerb("exec") && !box.hasVerb("commit"));
    assert.ok(box.enforces("net-none"));
    const { memLimit, processesLimit, sandboxId } = await box.stats();
    assert.deepEqual([memLimit, processesLimit, sandboxId], [256 << 20, 64, box.info.sandboxId]);
  });

  test("what cannot be had is refused with a sentence", async () => {
    const path = await folder();
    await assert.rejects(Sandbox.open({ workspace: path, tier: "strict" }), (error) => {
      assert.ok(error instanceof caisson.PolicyRefused, String(error));
      return error.message.length > 20;
    });
    await assert.rejects(Sandbox.open({ workspace: path, limits: { output: "1GiB" } }), (error) => {
      assert.ok(error instanceof caisson.PolicyRefused, String(error));
      assert.deepEqual([error.code, error.stage], ["eperm", "policy"]);
      return error.message.includes("limits: {output: 1GiB}");
    });
    await assert.rejects(Sandbox.open({ workspace: path, limits: { memory: "much" } }), caisson.CaissonError);
    await assert.rejects(Sandbox.open({ workspace: join(path, "none") }), caisson.CaissonError);
    await assert.rejects(Sandbox.attach("no-such-sandbox"), caisson.NotFound);
  });

  test("a value of the environment is in no argument list", async () => {
    const box = await sandbox({ env: { SECRET: "s3cr3t-of-typescript" } });
    const { processesWith } = await import("./common.js");
    assert.deepEqual(await processesWith("s3cr3t-of-typescript"), []);
    assert.equal((await box.exec("echo $SECRET")).text, "s3cr3t-of-typescript\n");
  });

  test("a link in the workspace leads nowhere else", async () => {
    const path = await folder();
    await symlink("/etc/shadow", join(path, "link"));
    const box = await sandbox({ workspace: path });
    await assert.rejects(box.read("link"), caisson.CaissonError);
  });

  test("it is its own disposal", async () => {
    const box = await Sandbox.open({ workspace: await folder(), noRecord: true });
    await box[Symbol.asyncDispose]();
    await assert.rejects(box.exec("true"), caisson.Lost);
    assert.equal((await box.close()).reason, "cancelled");
  });
});
