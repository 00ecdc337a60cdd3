/**
 * `caisson port` as a child. It holds the policy, the clocks and the wall; when its standard input
 * ends, however that comes, so does its sandbox: a program that dies leaves nothing behind.
 */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Socket } from "node:net";
import { CaissonError, NotInstalled } from "./errors.js";
import type { Wire } from "./link.js";

const SAID_BYTES = 4096;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export class PortProcess implements Wire {
  readonly input: Writable;
  readonly output: Readable;
  readonly exited: Promise<void>;
  private heard = "";

  private constructor(
    readonly program: string,
    private readonly child: Child,
  ) {
    this.input = child.stdin;
    this.output = child.stdout;
    this.exited = new Promise((resolve) => child.once("exit", () => resolve()));
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text: string) => {
      this.heard = (this.heard + text).slice(0, SAID_BYTES);
    });
    child.on("error", () => {}); // said when it was started; later it is the stream that tells
    this.unref();
  }

  /** Starts the program: the one named, $CAISSON, or the one on PATH. */
  static async start(program: string | undefined): Promise<PortProcess> {
    const name = program ?? (process.env["CAISSON"] || "caisson");
    // A group of its own: Ctrl-C at the terminal is for us, and we end it in order.
    const child: Child = spawn(name, ["port"], { stdio: ["pipe", "pipe", "pipe"], detached: true });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error: NodeJS.ErrnoException) => reject(explain(name, error)));
    });
    return new PortProcess(name, child);
  }

  ref(): void {
    this.child.ref();
    for (const stream of this.streams()) stream.ref();
  }

  unref(): void {
    this.child.unref();
    for (const stream of this.streams()) stream.unref();
  }

  /** Pipes of a child are sockets to Node. */
  private streams(): Socket[] {
    return [this.child.stdin, this.child.stdout, this.child.stderr] as unknown as Socket[];
  }

  said(): string {
    // Control characters would reach a terminal.
    return this.heard.trim().replace(/[\p{Cc}\p{Cf}]+/gu, " ");
  }

  /** Its input ends: it ends its sandbox and then itself. */
  destroy(): void {
    this.input.destroy();
  }

  /** For one that does not end by itself. */
  kill(): void {
    this.child.kill("SIGKILL");
  }
}

function explain(name: string, error: NodeJS.ErrnoException): CaissonError {
  if (error.code === "ENOENT") {
    const wayOut = "install caisson so that it is on PATH, or name it in the option `program` or in $CAISSON";
    return new NotInstalled("enoent", "open", `${name} is not there: ${wayOut}`, { cause: error });
  }
  return new CaissonError((error.code ?? "eio").toLowerCase(), "open", `cannot start ${name}: ${error.message}`, {
    cause: error,
  });
}
