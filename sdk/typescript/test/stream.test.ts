import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import * as caisson from "caisson";
import { oddSeconds, processesWith, sandbox, sleep, until } from "./common.js";

describe("output as it comes", () => {
  test("in pieces, then the result", async () => {
    const box = await sandbox();
    const stream = box.stream("echo one; sleep 0.2; echo two >&2; exit 4");
    const pieces: [string, string, number][] = [];
    const begun = Date.now();
    for await (const { stream: name, data } of stream) pieces.push([name, data.toString(), Date.now() - begun]);
    assert.deepEqual(pieces.map(([name, text]) => [name, text]), [["stdout", "one\n"], ["stderr", "two\n"]]);
    assert.ok((pieces[1]?.[2] ?? 0) - (pieces[0]?.[2] ?? 0) > 100, "they came together");
    const result = await stream.result();
    assert.deepEqual([result.exitCode, result.text, result.usage.stdoutBytes], [4, "one\ntwo\n", 4]);
    await assert.rejects(stream[Symbol.asyncIterator]().next(), caisson.Invalid);
  });

  test("of who does not take it the command waits, and no other", async () => {
    const box = await sandbox();
    const stream = box.stream("for n in {1..100}; do head -c 65536 /dev/zero; echo $n >progress; done");
    const pieces = stream[Symbol.asyncIterator]();
    let size = (await pieces.next()).value?.data.length ?? 0;
    await sleep(500);
    assert.ok((await box.exec("echo quick")).ok);
    const written = Number(await box.readText("progress")) * 65_536;
    assert.ok(written < 2 << 20, `${written} bytes were written`);
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) size += next.value.data.length;
    assert.equal(size, 100 * 65_536);
    assert.equal((await stream.result()).usage.stdoutBytes, 100 * 65_536);
  });

  test("leaving the iteration ends the command", async () => {
    const box = await sandbox();
    const seconds = oddSeconds();
    const stream = box.stream(`echo x; exec sleep ${seconds}`);
    for await (const { data } of stream) {
      assert.equal(data.toString(), "x\n");
      break;
    }
    assert.equal((await stream.result()).termination.reason, "cancelled");
    assert.deepEqual(await processesWith(seconds), []);
  });

  test("nobody has to take it", async () => {
    const box = await sandbox();
    assert.equal((await box.stream("seq 1000000").result()).usage.stdoutBytes, 6_888_896);
    const abandoned = box.stream("exit 1"); // neither awaited nor iterated: no unhandled rejection, no place kept
    await Promise.all(Array.from({ length: 40 }, () => box.exec("true")));
    assert.equal((await abandoned.result()).exitCode, 1);
  });

  test("ends with the error that ended it", async () => {
    const box = await sandbox();
    const iterate = async (): Promise<void> => {
      for await (const _ of box.follow("nobody"));
    };
    await assert.rejects(iterate(), caisson.NotFound);
  });
});

describe("input as it comes", () => {
  test("a conversation", async () => {
    const box = await sandbox();
    const stdin = new PassThrough();
    const stream = box.stream("while read line; do echo \"<$line>\"; done", { stdin });
    const said: string[] = [];
    stdin.write("one\n");
    for await (const { data } of stream) {
      said.push(data.toString());
      if (said.length === 1) stdin.write("two\n");
      else stdin.end();
    }
    assert.deepEqual(said, ["<one>\n", "<two>\n"]);
    assert.ok((await stream.result()).ok);
  });

  test("written by the stream's own write", async () => {
    const box = await sandbox();
    const stream = box.stream("while read line; do echo \"<$line>\"; done", { stdin: caisson.PIPE });
    await stream.write("one\n");
    const said: string[] = [];
    for await (const { data } of stream) {
      said.push(data.toString());
      if (said.length === 1) await stream.write(Buffer.from("two\n"));
      else stream.closeStdin();
    }
    assert.deepEqual(said, ["<one>\n", "<two>\n"]);
    assert.ok((await stream.result()).ok);
    await assert.rejects(stream.write("three\n"), caisson.Invalid);
  });

  test("written: waits for who does not read, and for nobody who has ended", async () => {
    const box = await sandbox();
    const deaf = box.stream("sleep 60", { stdin: caisson.PIPE });
    await deaf.write(Buffer.alloc(200_000)); // within the window
    let isDone = false;
    const late = deaf.write(Buffer.alloc(500_000)).then(() => (isDone = true));
    await sleep(300);
    assert.equal(isDone, false);
    deaf.cancel();
    await late;
    assert.equal((await deaf.result()).termination.reason, "cancelled");
    await deaf.write("to nobody");
  });

  test("written: all of it, at once, and to a sandbox that is over", async () => {
    const box = await sandbox();
    const stream = box.stream("wc -c", { stdin: caisson.PIPE });
    await Promise.all([stream.write("a".repeat(700_000)), stream.write(""), stream.write("b")]);
    stream.closeStdin();
    assert.equal((await stream.result()).text, "700001\n");
    await box.close();
    const never = box.stream("cat", { stdin: caisson.PIPE });
    await never.write("x");
    await assert.rejects(never.result(), caisson.Lost);
  });

  test("written where there is no pipe", async () => {
    const box = await sandbox();
    const stream = box.stream("cat", { stdin: "x" });
    await assert.rejects(stream.write("y"), caisson.Invalid);
    assert.throws(() => stream.closeStdin(), caisson.Invalid);
    assert.equal((await stream.result()).text, "x");
    // @ts-expect-error: nobody could write to it
    await assert.rejects(box.exec("cat", { stdin: caisson.PIPE }), caisson.Invalid);
  });

  test("one that never ends holds nothing up, and is told", async () => {
    const box = await sandbox();
    let isTold = false;
    const forever = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<never>(() => {}),
        return: () => {
          isTold = true;
          return Promise.resolve({ done: true as const, value: undefined });
        },
      }),
    };
    assert.equal((await box.exec("echo over", { stdin: forever })).text, "over\n");
    await until(() => isTold);
  });

  test("of who does not read it no more is taken", async () => {
    const box = await sandbox();
    let taken = 0;
    const pieces = function* (): Generator<Buffer> {
      for (;;) {
        taken += 65_536;
        yield Buffer.alloc(65_536);
      }
    };
    const seen: number[] = [];
    const onOutput = async (): Promise<void> => void (await sleep(200), seen.push(taken));
    await box.exec("echo begun; sleep 0.5", { stdin: pieces(), onOutput }); // what comes at its end nobody reads
    assert.ok((seen[0] ?? Infinity) <= 1 << 20, `${seen} bytes were taken`);
  });

  test("that fails ends the command", async () => {
    const box = await sandbox();
    const boom = new Error("boom");
    const pieces = function* (): Generator<string> {
      yield "x";
      throw boom;
    };
    await assert.rejects(box.exec("cat; sleep 60", { stdin: pieces() }), boom);
  });

  test("a terminal", async () => {
    const box = await sandbox();
    const stdin = new PassThrough();
    const stream = box.stream("stty size; read x; stty size", { stdin, tty: { rows: 20, columns: 70 } });
    let text = "";
    for await (const { stream: name, data } of stream) {
      assert.equal(name, "tty");
      text += data.toString();
      if (text === "20 70\r\n") {
        stream.resize(30, 90);
        stdin.write("\r");
      }
    }
    assert.match(text, /30 90\r\n$/);
  });

  test("signals", async () => {
    const box = await sandbox();
    const stream = box.stream("trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done");
    let text = "";
    for await (const { stream: name, data } of stream) {
      if (name === "stderr") continue; // the shell may tell of its sleep, which is in the group too
      text += data.toString();
      if (text === "ready\n") stream.signal("SIGUSR1");
    }
    assert.equal(text, "ready\ngot\n");
    assert.equal((await stream.result()).exitCode, 5);
    assert.throws(() => stream.signal(65), caisson.Invalid);
  });
});

describe("an AbortSignal", () => {
  test("ends a command and all it started; the account is in the error", async () => {
    const box = await sandbox();
    const seconds = oddSeconds();
    const controller = new AbortController();
    const call = box.exec(`sleep ${seconds} & echo begun; sleep ${seconds}`, {
      signal: controller.signal,
      onOutput: () => controller.abort("enough"),
    });
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof caisson.Cancelled);
      assert.deepEqual([error.name, error.code, error.cause], ["AbortError", "cancelled", "enough"]);
      assert.equal(error.result?.termination.reason, "cancelled");
      assert.equal(error.result.stdout.toString(), "begun\n");
      return true;
    });
    assert.deepEqual(await processesWith(seconds), []);
    assert.ok((await box.exec("true")).ok);
  });

  test("before the call, while it waits for its turn, of a stream", async () => {
    const box = await sandbox();
    await assert.rejects(box.exec("true", { signal: AbortSignal.abort() }), caisson.Cancelled);
    const controller = new AbortController();
    const busy = Array.from({ length: 28 }, () => box.exec("sleep 0.5"));
    const late = box.exec("true", { signal: controller.signal });
    controller.abort();
    await assert.rejects(late, caisson.Cancelled);
    await Promise.all(busy);
    const iterate = async (): Promise<void> => {
      for await (const _ of box.stream("sleep 60", { signal: AbortSignal.timeout(100) }));
    };
    await assert.rejects(iterate(), caisson.Cancelled);
  });

  test("of a call that is no command, and its time", async () => {
    const box = await sandbox();
    await box.start("sleep 60", { tag: "t" });
    await assert.rejects(box.wait("t", { signal: AbortSignal.timeout(50) }), caisson.Cancelled);
    await assert.rejects(box.logs("t", { follow: true, timeoutMs: 50 }), caisson.Timeout);
    await box.kill("t", "SIGKILL");
  });

  test("leaves no listener behind", async () => {
    const box = await sandbox();
    const controller = new AbortController();
    for (let i = 0; i < 20; i++) await box.stat(".", { signal: controller.signal });
    assert.equal(getEventListeners(controller.signal, "abort").length, 0);
  });
});

describe("many calls", () => {
  test("ten thousand at once", async () => {
    const box = await sandbox();
    await box.write("f", "x");
    const answers = await Promise.all(Array.from({ length: 10_000 }, () => box.read("f")));
    assert.ok(answers.every((bytes) => bytes.toString() === "x"));
  });

  test("what ends others does not wait behind them", async () => {
    const box = await sandbox();
    await box.start("sleep 60", { tag: "t" });
    const waiting = Array.from({ length: 100 }, () => box.wait("t"));
    await box.kill("t", "SIGKILL");
    assert.ok((await Promise.all(waiting)).every(({ signal }) => signal === 9));
  });
});
