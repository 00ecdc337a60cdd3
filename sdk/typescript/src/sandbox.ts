/**
 * A sandbox: a handle to a monitor, another process. Nothing is decided here; what cannot be had is
 * refused with a sentence, and nothing weaker is taken instead.
 */

import { type Call, type CallOptions, cancelledBy, type Chunk, type Input } from "./call.js";
import { Cancelled, Invalid, TooLarge } from "./errors.js";
import { Kept, Outputs } from "./kept.js";
import { type Fields, Link } from "./link.js";
import { Pipe, PIPE } from "./pipe.js";
import { PortProcess } from "./process.js";
import * as shapes from "./results.js";
import type * as results from "./results.js";
import { type Shape } from "./shape.js";
import { signalNumber, type Signal, Stream } from "./stream.js";
import { atom, type Term } from "./term.js";

const KEEP = 1 << 20;
const KEEP_MOST = 64 << 20;
const PIECE = 65_536;
const START_MS = 60_000;
const CLOSE_MS = 20_000; // of which the sandbox may have some to end
const EXIT_MS = 2_000;

/** The flags of `caisson run`, as texts in the same form. All left out: the project here, read-only, and its policy. */
export interface OpenOptions {
  /** The caisson command. Default: $CAISSON, or the one on PATH. */
  program?: string;
  /** A policy file, trusted. */
  policy?: string;
  /** At least this wall: "balanced". */
  tier?: string;
  /** Exactly this wall: "process". */
  backend?: string;
  /** "PATH[:ro|rw|cow]" */
  workspace?: string;
  /** Where it appears; "host": under its own path. */
  at?: string;
  network?: "none" | "loopback" | "allow" | "engine";
  /** "HOST[:PORT]" */
  allow?: readonly string[];
  /** "HOST:AT[:ro|rw]" */
  mounts?: readonly string[];
  /** { memory: "1GiB", processes: 64 }, or ["memory=1GiB"]. */
  limits?: Readonly<Record<string, string | number>> | readonly string[];
  /** { NAME: "value" }, with true instead of a value to pass on ours; or ["NAME=value", "NAME"]. */
  env?: Readonly<Record<string, string | true>> | readonly string[];
  tags?: readonly string[];
  /** Where the record goes. */
  runDir?: string;
  /** The name of a pool to take it from (`caisson pool start`); what does not fit is made as without. */
  pool?: string;
  noRecord?: boolean;
  /** For the wall to stand; default a minute. */
  startTimeoutMs?: number;
  /** For each call that has none of its own. */
  callTimeoutMs?: number;
  /** Is told each violation as it is seen. */
  onViolation?: (violation: results.Violation) => void;
  /** Gives up waiting for the wall. */
  signal?: AbortSignal;
}

export interface Options {
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface StartOptions extends Options {
  /** Default: the workspace. */
  cwd?: string;
  /** Added to what the sandbox gives. */
  env?: Readonly<Record<string, string>>;
  /** A name, for logs, wait and kill. */
  tag?: string;
}

export interface StreamOptions extends StartOptions {
  /** Standard input; else it is empty. PIPE: what `write` gives the stream. */
  stdin?: Input | typeof PIPE;
  /** A terminal of its own, of this size; its output is "tty". */
  tty?: { rows: number; columns: number };
  onViolation?: (violation: results.Violation) => void;
  /** Bytes of each stream in the result: all of it, or the first and last half. Default 1 MiB, at most 64 MiB. */
  keep?: number;
}

export interface ExecOptions extends StreamOptions {
  stdin?: Input;
  /** Is given the output as it comes; a promise is waited for, and the command with it. */
  onOutput?: (chunk: Chunk) => void | Promise<void>;
}

export interface LogsOptions extends Options {
  /** Until the command has ended. */
  follow?: boolean;
  /** Is given the output as it comes. */
  onOutput?: (chunk: Chunk) => void | Promise<void>;
  keep?: number;
}

export interface WaitOptions extends Options {
  /** Until somebody inside listens on it. */
  port?: number;
  /** Until it writes a line that this POSIX extended expression matches. */
  line?: string;
  /** Until it writes a line that contains this. */
  text?: string;
  /** Of one that has ended: drops its status and output. */
  forget?: boolean;
}

export interface ReadOptions extends Options {
  offset?: number;
  /** Most bytes; default: to the end. */
  length?: number;
}

export interface GrepOptions extends Options {
  /** File or folder; default: the workspace. */
  path?: string;
  /** Only files whose path matches. */
  glob?: string;
  ignoreCase?: boolean;
  limit?: number;
  /** Lines before and after. */
  context?: number;
}

export interface ChangesOptions extends Options {
  /** Only these; default: all. */
  paths?: readonly string[];
}

/** Text for bash (sh where there is none), or a program and its arguments. */
export type Command = string | readonly string[];

function assignments(values: Readonly<Record<string, string | number | true>> | readonly string[] | undefined): string[] | undefined {
  if (values === undefined) return undefined;
  if (Array.isArray(values)) return [...(values as readonly string[])];
  return Object.entries(values as Record<string, string | number | true>).map(([name, value]) =>
    value === true ? name : `${name}=${value}`,
  );
}

function commandFields(command: Command, options: StreamOptions): Fields {
  return {
    ...(typeof command === "string" ? { command } : { argv: command }),
    cwd: options.cwd,
    env: options.env && new Map(Object.entries(options.env)),
    tag: options.tag,
    ...(options.tty && { tty: true, rows: options.tty.rows, cols: options.tty.columns }),
    stdin: options.stdin === undefined ? undefined : true,
  };
}

function keepOf(keep: number | undefined): number {
  return Math.max(0, Math.min(keep ?? KEEP, KEEP_MOST));
}

function execResult(answer: Term, { stdout, stderr, merged }: Outputs): results.ExecResult {
  const { reason, clock, error, stage, text, exitCode, signal, violations, outputCut, pid, ...used } = shapes.account(
    answer,
    "exec",
  );
  const output = merged.data();
  return {
    stdout: stdout.data(),
    stderr: stderr.data(),
    output,
    exitCode,
    signal,
    termination: { reason, clock, error, stage, text },
    usage: used,
    violations,
    stdoutCut: stdout.cut(),
    stderrCut: stderr.cut(),
    mergedCut: merged.cut(),
    outputCut,
    pid,
    ok: reason === "exited" && exitCode === 0,
    get text() {
      return output.toString("utf8");
    },
  };
}

export class Sandbox implements AsyncDisposable {
  /** What was opened. */
  readonly info: results.Info;
  readonly #link: Link;
  readonly #process: PortProcess;
  readonly #timeoutMs: number | undefined;
  #closing: Promise<results.Closed> | undefined;

  private constructor(link: Link, process: PortProcess, info: results.Info, timeoutMs: number | undefined) {
    this.#link = link;
    this.#process = process;
    this.info = info;
    this.#timeoutMs = timeoutMs;
  }

  /** Starts a monitor and waits until its wall stands. When this program ends, however it ends, the sandbox does. */
  static open(options: OpenOptions = {}): Promise<Sandbox> {
    return Sandbox.#begin(options, {
      policy: options.policy,
      tier: options.tier,
      backend: options.backend,
      workspace: options.workspace,
      at: options.at,
      network: options.network,
      allow: options.allow,
      mounts: options.mounts,
      limits: assignments(options.limits),
      env: assignments(options.env),
      tags: options.tags,
      run_dir: options.runDir,
      pool: options.pool,
      record: options.noRecord ? false : undefined,
    });
  }

  /** Joins a sandbox that `caisson up` or `fork` made; closing it leaves it running. */
  static attach(
    name: string,
    options: Pick<OpenOptions, "program" | "startTimeoutMs" | "callTimeoutMs" | "onViolation" | "signal"> = {},
  ): Promise<Sandbox> {
    return Sandbox.#begin(options, { attach: name });
  }

  static async #begin(options: OpenOptions, fields: Fields): Promise<Sandbox> {
    const { signal } = options;
    if (signal?.aborted) throw cancelledBy(signal, "open");
    const process = await PortProcess.start(options.program);
    const link = new Link(process);
    const onAbort = (): void => void link.lose(cancelledBy(signal, "open"));
    signal?.addEventListener("abort", onAbort, { once: true });
    link.onViolation = options.onViolation;
    try {
      const info = await link.open(fields, options.startTimeoutMs ?? START_MS);
      return new Sandbox(link, process, info, options.callTimeoutMs);
    } catch (error) {
      process.destroy();
      await Sandbox.#reap(link, process);
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Waits for the program's end, and makes it end if it does not. */
  static async #reap(link: Link, process: PortProcess): Promise<void> {
    await link.holding(async () => {
      const late = setTimeout(() => process.kill(), EXIT_MS);
      await process.exited;
      clearTimeout(late);
    });
  }

  /** Ends the sandbox, or leaves one that was joined; when it returns nothing of it is left. */
  close(): Promise<results.Closed> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<results.Closed> {
    const gone: results.Closed = { reason: "lost", sandboxId: this.info.sandboxId, recorded: false, result: null };
    const closed = await this.#link.close(CLOSE_MS).catch(() => gone);
    this.#link.closed();
    await Sandbox.#reap(this.#link, this.#process);
    return closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** May this be called? If not, it rejects with NotSupported. */
  hasVerb(verb: string): boolean {
    return this.#link.verbs.has(verb);
  }

  /** Does the wall enforce this ("syscalls", "net-none")? */
  enforces(feature: string): boolean {
    return this.#link.enforces.has(feature);
  }

  // ---- commands ----------------------------------------------------------------------------------

  /** Runs a command and waits for its end. A status other than 0 is a result. */
  async exec(command: Command, options: ExecOptions = {}): Promise<results.ExecResult> {
    const outputs = new Outputs(keepOf(options.keep));
    const fields = { ...commandFields(command, options), timeout_ms: options.timeoutMs ?? this.#timeoutMs };
    return this.#link.call("exec", fields, execOptions(options, outputs), async (call) => {
      const answer = await call.drain(options.onOutput);
      return ofCommand(call, execResult(answer, outputs), options.signal);
    });
  }

  /** The same, with its output as it comes: iterate, then ask for the result. */
  stream(command: Command, options: StreamOptions = {}): Stream<results.ExecResult> {
    const outputs = new Outputs(keepOf(options.keep));
    const fields = { ...commandFields(command, options), timeout_ms: options.timeoutMs ?? this.#timeoutMs };
    const pipe = options.stdin === PIPE ? new Pipe() : undefined;
    return new Stream(
      (use) => this.#link.call("exec", fields, execOptions(options, outputs, pipe), use),
      (answer, call) => ofCommand(call, execResult(answer, outputs), options.signal),
      pipe,
    );
  }

  /** Starts a command that outlives this call, and returns when it runs. */
  async start(command: Command, options: StartOptions = {}): Promise<results.ExecResult> {
    const outputs = new Outputs(0);
    const fields = { ...commandFields(command, options), detach: true };
    return this.#link.call("exec", fields, this.#own(options), async (call) => execResult(await call.drain(), outputs));
  }

  /** Commands that run, and those started that ended. */
  async ps(options: Options = {}): Promise<results.Process[]> {
    return (await this.#ask("ps", {}, options, shapes.processes)).commands;
  }

  /** What a started command wrote. */
  async logs(tag: string, options: LogsOptions = {}): Promise<results.Logs> {
    const { stdout, stderr, merged, add } = new Outputs(keepOf(options.keep));
    const fields = { tag, follow: options.follow || undefined };
    return this.#link.call("logs", fields, { ...this.#own(options), tap: add }, async (call) => ({
      ...shapes.logs(await call.drain(options.onOutput), "logs"),
      stdout: stdout.data(),
      stderr: stderr.data(),
      output: merged.data(),
    }));
  }

  /** The same as it comes, until the command's end. */
  async *follow(tag: string, options: Options = {}): AsyncGenerator<Chunk, void, undefined> {
    const own = { signal: options.signal, timeoutMs: options.timeoutMs };
    yield* new Stream(
      (use) => this.#link.call("logs", { tag, follow: true }, own, use),
      (answer) => shapes.logs(answer, "logs"),
    );
  }

  /** Waits for a started command's end, a port, a line. Its time's end is a result; the command lives on. */
  wait(tag: string, options: WaitOptions = {}): Promise<results.Waited> {
    const { port, line, text } = options;
    const fields = { tag, port, line, text, forget: options.forget || undefined, timeout_ms: options.timeoutMs };
    return this.#ask("wait", fields, { signal: options.signal, timeoutMs: 0 }, shapes.waited);
  }

  /** Signals a command by its tag; without a signal TERM to its tree, and KILL after 500 ms. */
  async kill(tag: string, signal?: Signal, options: Options = {}): Promise<void> {
    const fields = { tag, signal: signal === undefined ? undefined : signalNumber(signal) };
    await this.#do("kill", fields, options);
  }

  // ---- files -------------------------------------------------------------------------------------

  /** A file's bytes; without `length` at most 64 MiB, else TooLarge. */
  async read(path: string, options: ReadOptions = {}): Promise<Buffer> {
    const most = options.length ?? KEEP_MOST;
    const pieces: Buffer[] = [];
    let size = 0;
    const take = ({ data }: Chunk): void => {
      size += data.length;
      if (size > most) throw new TooLarge("efbig", "read", `${path} is larger than ${most} bytes: ask for a part of it`);
      pieces.push(data);
    };
    return this.#link.call("read", readFields(path, options), this.#own(options), async (call) => {
      const answer = shapes.wasRead(await call.drain(take), "read");
      return answer.bytes ?? Buffer.concat(pieces);
    });
  }

  /** A file as text; what is no UTF-8 is replaced. */
  async readText(path: string, options: Options = {}): Promise<string> {
    return (await this.read(path, options)).toString("utf8");
  }

  /** A file of any size, piece by piece. */
  async *readPieces(path: string, options: ReadOptions = {}): AsyncGenerator<Buffer, void, undefined> {
    const stream = new Stream(
      (use) => this.#link.call("read", readFields(path, options), this.#own(options), use),
      (answer) => shapes.wasRead(answer, "read"),
    );
    for await (const { data } of stream) yield data;
    const { bytes } = await stream.result();
    if (bytes && bytes.length > 0) yield bytes;
  }

  /** Replaces a file, whole or not at all; its folders are made. */
  async write(path: string, content: Input, options: Options & { mode?: number } = {}): Promise<void> {
    const whole = typeof content === "string" ? Buffer.from(content, "utf8") : content;
    const isShort = whole instanceof Uint8Array && whole.length <= PIECE;
    const fields = { path, mode: options.mode, ...(isShort ? { bytes: whole } : { stdin: true }) };
    await this.#do("write", fields, options, isShort ? undefined : whole);
  }

  /** Replaces a text where it occurs exactly once; else counts it and changes nothing. */
  edit(path: string, oldText: string | Uint8Array, newText: string | Uint8Array, options: Options = {}): Promise<results.Edited> {
    return this.#ask("edit", { path, old: oldText, new: newText }, options, shapes.edited);
  }

  /** What a path is; links are not followed. */
  stat(path: string, options: Options = {}): Promise<results.Stat> {
    return this.#ask("stat", { path }, options, shapes.stat);
  }

  /** What is in a folder. */
  list(path = ".", options: Options = {}): Promise<results.Listing> {
    return this.#ask("list", { path }, options, shapes.listed);
  }

  /** Removes a file, a link or, `recursive`, a folder with its content. */
  async remove(path: string, options: Options & { recursive?: boolean } = {}): Promise<void> {
    await this.#do("remove", { path, recursive: options.recursive || undefined }, options);
  }

  /** Renames; what has the new name is replaced. */
  async move(path: string, to: string, options: Options = {}): Promise<void> {
    await this.#do("move", { path, to }, options);
  }

  /** Paths that match a pattern, with `**` and braces. */
  glob(pattern: string, options: Options & { cwd?: string; limit?: number } = {}): Promise<results.Globbed> {
    const { cwd, limit, timeoutMs = this.#timeoutMs, signal } = options;
    return this.#ask("glob", { pattern, cwd, limit, timeout_ms: timeoutMs }, { signal, timeoutMs: 0 }, shapes.globbed);
  }

  /** Lines that match a regular expression. */
  grep(pattern: string, options: GrepOptions = {}): Promise<results.Grepped> {
    const { path, glob, limit, context, timeoutMs = this.#timeoutMs, signal } = options;
    const sensitive = options.ignoreCase ? { case_sensitive: false } : {};
    const fields = { pattern, path, glob, limit, context, timeout_ms: timeoutMs, ...sensitive };
    return this.#ask("grep", fields, { signal, timeoutMs: 0 }, shapes.grepped);
  }

  // ---- the workspace -----------------------------------------------------------------------------

  /** Lends one more path, from beneath the policy's `mount_roots`. */
  async mount(host: string, at: string, options: Options & { writable?: boolean } = {}): Promise<void> {
    await this.#do("mount", { host, at, mode: options.writable ? atom("rw") : undefined }, options);
  }

  /** What a copy-on-write workspace changed. */
  async diff(options: ChangesOptions & { namesOnly?: boolean; keep?: number } = {}): Promise<results.Diff> {
    const text = new Kept(keepOf(options.keep));
    const fields = { paths: options.paths, names_only: options.namesOnly || undefined };
    return this.#link.call("diff", fields, this.#own(options), async (call) => ({
      ...shapes.differences(await call.drain(({ data }) => text.add(data)), "diff"),
      text: text.data(),
      textCut: text.cut(),
    }));
  }

  /** Writes that to the workspace, except what changed there meanwhile (`force`) or is guarded and not named. */
  commit(options: ChangesOptions & { force?: boolean; dryRun?: boolean } = {}): Promise<results.Committed> {
    const { paths, force, dryRun } = options;
    const fields = { paths, force: force || undefined, dry_run: dryRun || undefined };
    return this.#ask("commit", fields, options, shapes.committed);
  }

  /** Keeps what changed so far under a tag. */
  snapshot(tag: string, options: Options = {}): Promise<results.Copied> {
    return this.#ask("snapshot", { tag }, options, shapes.copied);
  }

  /** Starts another sandbox with what changed so far, or with a snapshot: `Sandbox.attach(name)` joins it. */
  fork(name: string, options: Options & { tag?: string } = {}): Promise<results.Copied> {
    return this.#ask("fork", { name, tag: options.tag }, options, shapes.copied);
  }

  /** What it is and uses, now. No sign of life: a sandbox that is only looked at ends by its idle clock. */
  stats(options: Options = {}): Promise<results.Stats> {
    return this.#ask("stats", {}, options, shapes.stats);
  }

  // ---- calls -------------------------------------------------------------------------------------

  #own(options: Options): CallOptions {
    return { signal: options.signal, timeoutMs: options.timeoutMs ?? this.#timeoutMs };
  }

  #ask<T>(verb: string, fields: Fields, options: Options, shape: Shape<T>, input?: Input): Promise<T> {
    return this.#link.call(verb, fields, { ...this.#own(options), input }, async (call) => shape(await call.drain(), verb));
  }

  #do(verb: string, fields: Fields, options: Options, input?: Input): Promise<void> {
    return this.#ask(verb, fields, options, () => undefined, input);
  }
}

function readFields(path: string, options: ReadOptions): Fields {
  return { path, offset: options.offset, length: options.length };
}

function execOptions(options: StreamOptions, outputs: Outputs, pipe?: Pipe): CallOptions {
  if (options.stdin === PIPE && !pipe) throw new Invalid("invalid", "exec", "PIPE is for a stream, which is written to");
  const input = options.stdin === PIPE ? pipe : options.stdin;
  return { signal: options.signal, onViolation: options.onViolation, input, tap: outputs.add };
}

/** A command that its AbortSignal ended has an account, and rejects all the same. */
function ofCommand(call: Call, result: results.ExecResult, signal: AbortSignal | undefined): results.ExecResult {
  if (result.termination.reason !== "cancelled" || !call.wasAborted) return result;
  const error = cancelledBy(signal, "exec");
  if (error instanceof Cancelled) error.result = result;
  throw error;
}
