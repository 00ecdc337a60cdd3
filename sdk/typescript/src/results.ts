/**
 * Results, as shapes: the types below are what the checks let through, so neither can say something
 * else than the other. Times end in `Ms` or `Us`; what is not known is null.
 */

import * as is from "./shape.js";

/** Why a command ended. "cancelled": by the caller; "detached": it goes on. */
export type Reason =
  | "exited"
  | "signaled"
  | "timeout"
  | "memory"
  | "output"
  | "processes"
  | "scratch"
  | "violation"
  | "cancelled"
  | "lost"
  | "start_failed"
  | "detached";

export const violation = is.record({
  /** "NetworkAccessViolation" */
  event: is.text,
  /** What saw it: "seccomp", "landlock", "cgroup", "clock". */
  source: is.optional(is.word),
  /** What decided: "limits.memory". */
  rule: is.text,
  /** A sentence: what was denied, what is allowed instead. */
  say: is.text,
  /** False: a program that races could have blurred the record. */
  certain: is.boolean,
  /** Noise that well-known tools make. */
  expected: is.fallback(is.boolean, false),
  /** Stands for further different ones of its event. */
  others: is.fallback(is.boolean, false),
  /** Equal ones are folded. */
  count: is.integer,
  /** Of the first, since 1970, UTC. */
  timeMs: is.optional(is.integer),
  /** Of the last. */
  lastMs: is.optional(is.integer),
  /** On the host. */
  pid: is.optional(is.integer),
  /** The program's name, which it can choose. */
  comm: is.optional(is.text),
  syscall: is.optional(is.text),
  /** Inside the sandbox. */
  path: is.optional(is.text),
  /** The second path of a rename or link. */
  to: is.optional(is.text),
  address: is.optional(is.text),
  port: is.optional(is.integer),
  /** A name that was looked up. */
  host: is.optional(is.text),
  /** Anything else. */
  text: is.optional(is.text),
});
export type Violation = is.Of<typeof violation>;

/** The answer of exec, as it comes. */
export const account = is.record({
  reason: is.word as is.Shape<Reason>,
  clock: is.optional(is.word),
  exitCode: is.nullable(is.integer),
  signal: is.nullable(is.integer),
  error: is.optional(is.word),
  stage: is.optional(is.text),
  text: is.optional(is.text),
  wallUs: is.integer,
  cpuUs: is.integer,
  memPeakBytes: is.integer,
  scope: is.fallback(is.word, "command") as is.Shape<"command" | "sandbox">,
  stdoutBytes: is.integer,
  stderrBytes: is.integer,
  outputCut: is.named("output_cut_bytes", is.integer),
  violations: is.listOf(violation),
  pid: is.optional(is.integer),
});
export type Account = is.Of<typeof account>;

/** Why a command ended. */
export interface Termination {
  readonly reason: Reason;
  /** Of a timeout: "startup", "command", "idle", "budget". */
  readonly clock: string | null;
  /** Of "start_failed": "enoent", "eacces". */
  readonly error: string | null;
  /** What failed then. */
  readonly stage: string | null;
  /** A sentence on it, or on the limit that ended it. */
  readonly text: string | null;
}

/** What a command used. */
export interface Usage {
  readonly wallUs: number;
  readonly cpuUs: number;
  readonly memPeakBytes: number;
  /** That it wrote, cut ones included. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** What these are of. */
  readonly scope: "command" | "sandbox";
}

/**
 * How a command went. A status other than 0, a timeout, a kill are results. `output` is both streams in
 * the order in which they came. Of each, `keep` bytes are kept: all of it, or the first and the last half.
 */
export interface ExecResult {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly output: Buffer;
  /** Null: it did not exit by itself. */
  readonly exitCode: number | null;
  /** That ended it. */
  readonly signal: number | null;
  readonly termination: Termination;
  readonly usage: Usage;
  readonly violations: readonly Violation[];
  /** Bytes that were not kept, between the halves. */
  readonly stdoutCut: number;
  readonly stderrCut: number;
  readonly mergedCut: number;
  /** Bytes that the sandbox's output limit cut before they came. */
  readonly outputCut: number;
  /** Of one that was started, inside. */
  readonly pid: number | null;
  /** It exited by itself with status 0. */
  readonly ok: boolean;
  /** `output` as text; what is no UTF-8 is replaced. */
  readonly text: string;
}

export const processes = is.record({
  commands: is.listOf(
    is.record({
      tag: is.optional(is.text),
      /** "starting", "running", "ending", "ended", "lost" */
      state: is.word,
      /** Outlives its call. */
      detached: is.boolean,
      /** Inside; null before it began. */
      pid: is.nullable(is.integer),
      exitCode: is.nullable(is.integer),
      signal: is.nullable(is.integer),
      /** Since 1970, UTC. */
      startedMs: is.integer,
      /** Output of a detached one so far. */
      bytes: is.integer,
      /** Of them, those that `logs` no longer has. */
      cut: is.integer,
    }),
  ),
});
export type Process = is.Of<typeof processes>["commands"][number];

export const logs = is.record({
  /** That came. */
  bytes: is.integer,
  /** That it wrote and that did not come: the last 1 MiB is remembered. */
  cut: is.integer,
  /** There may be more. */
  running: is.boolean,
});
export interface Logs extends is.Of<typeof logs> {
  stdout: Buffer;
  stderr: Buffer;
  /** Both, in the order in which they came. */
  output: Buffer;
}

export const waited = is.record({
  /** It is so; without port, line and text: it has ended. */
  reached: is.boolean,
  timedOut: is.boolean,
  running: is.boolean,
  exitCode: is.nullable(is.integer),
  signal: is.nullable(is.integer),
  /** The line that matched. */
  line: is.optional(is.bytes),
});
export type Waited = is.Of<typeof waited>;

export const wasRead = is.record({ bytes: is.optional(is.bytes), size: is.integer });

export const edited = is.record({
  /** Of the old text; the file was written if 1. */
  occurrences: is.integer,
  /** Of the file now; null above 1 MiB. */
  content: is.optional(is.bytes),
});
export type Edited = is.Of<typeof edited>;

export type FileType = "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

export const stat = is.record({
  type: is.word as is.Shape<FileType>,
  size: is.integer,
  /** Permissions. */
  mode: is.integer,
  mtimeMs: is.integer,
  /** Of a symbolic link. */
  target: is.optional(is.text),
});
export type Stat = is.Of<typeof stat>;

export const listed = is.record({
  entries: is.listOf(is.record({ name: is.text, type: is.word as is.Shape<FileType>, size: is.integer })),
  /** There were more. */
  truncated: is.boolean,
});
export type Listing = is.Of<typeof listed>;
export type Entry = Listing["entries"][number];

export const globbed = is.record({
  /** Relative to `cwd`, sorted. */
  paths: is.listOf(is.text),
  truncated: is.boolean,
  /** Folders that could not be read, or are the kernel's. */
  skipped: is.integer,
});
export type Globbed = is.Of<typeof globbed>;

export const grepped = is.record({
  matches: is.listOf(
    is.record({
      /** Relative to the workspace, absolute if not in it. */
      path: is.text,
      lineNumber: is.integer,
      /** Without its newline. */
      line: is.bytes,
      /** A neighbour of a match. */
      isContext: is.fallback(is.boolean, false),
    }),
  ),
  /** Files that match but are no text. */
  binary: is.listOf(is.text),
  truncated: is.boolean,
  skipped: is.integer,
});
export type Grepped = is.Of<typeof grepped>;
export type Match = Grepped["matches"][number];

const change = is.record({
  path: is.text,
  change: is.word as is.Shape<"added" | "modified" | "deleted">,
  kind: is.optional(is.word),
  size: is.optional(is.integer),
  mode: is.optional(is.integer),
  /** Of a rename: where it was, or where it is. */
  other: is.optional(is.text),
  /** `commit` writes it only if it is named. */
  guarded: is.fallback(is.boolean, false),
  /** Why `commit` left it out. */
  reason: is.optional(is.text),
});
export type Change = is.Of<typeof change>;

export const differences = is.record({
  changes: is.listOf(change),
  truncated: is.boolean,
  /** Files that cannot be changed in the copy: their owner has no number inside. */
  foreign: is.fallback(is.integer, 0),
  foreignNames: is.fallback(is.listOf(is.text), []),
});
export interface Diff extends is.Of<typeof differences> {
  /** The changed lines, as patch(1) reads them: all, or the first and last half. */
  text: Buffer;
  /** Bytes of it that were not kept. */
  textCut: number;
}

export const committed = is.record({
  applied: is.listOf(change),
  /** Not written, each with a reason. */
  left: is.listOf(change),
  truncated: is.fallback(is.boolean, false),
});
export type Committed = is.Of<typeof committed>;

export const copied = is.record({
  /** Files and folders that were copied. */
  entries: is.integer,
  bytes: is.integer,
  /** Files that changed all the time and may be of several moments. */
  torn: is.integer,
  /** The first of them, without its folder. */
  tornName: is.filled(is.text),
});
export type Copied = is.Of<typeof copied>;

export const stats = is.record({
  /** Of its record, as `caisson runs show` takes it. */
  sandboxId: is.text,
  tier: is.text,
  backend: is.text,
  /** On the host; null: none. */
  workspace: is.filled(is.text),
  mode: is.text as is.Shape<"ro" | "rw" | "cow">,
  startedMs: is.integer,
  commands: is.integer,
  idleMs: is.integer,
  idleLimitMs: is.nullable(is.integer),
  /** How the rest is known: "cgroup", "sampled". */
  means: is.text,
  memBytes: is.nullable(is.integer),
  memLimit: is.nullable(is.integer),
  processes: is.nullable(is.integer),
  processesLimit: is.nullable(is.integer),
  cpuUs: is.nullable(is.integer),
  scratchBytes: is.nullable(is.integer),
  scratchLimit: is.nullable(is.integer),
});
export type Stats = is.Of<typeof stats>;

/** What was opened. The lists are of a sandbox of our own, empty for one that was joined. */
export const opened = is.record({
  /** The version of the program. */
  caisson: is.text,
  protocol: is.integer,
  verbs: is.listOf(is.word),
  /** What holds: "syscalls", "net-none". */
  enforces: is.listOf(is.word),
  sandboxId: is.text,
  /** That was asked for. */
  tier: is.text,
  /** The wall that was chosen. */
  backend: is.text,
  /** On the host; null: none. */
  workspace: is.filled(is.text),
  mode: is.text as is.Shape<"ro" | "rw" | "cow">,
  /** Of one that was joined. */
  name: is.optional(is.text),
  /** Where the workspace is inside. */
  at: is.optional(is.text),
  network: is.optional(is.text),
  /** Events that this wall sees, and those that it does not. */
  observed: is.fallback(is.listOf(is.text), []),
  notObserved: is.fallback(is.listOf(is.text), []),
  /** Of the policy, what this wall cannot do. */
  noEffect: is.fallback(is.listOf(is.text), []),
  protectNotEnforced: is.fallback(is.listOf(is.text), []),
});
export type Info = is.Of<typeof opened>;

export const closed = is.record({
  /** "cancelled": as it was asked; "detached": one that was joined, and goes on. */
  reason: is.word,
  sandboxId: is.optional(is.text),
  recorded: is.fallback(is.boolean, false),
  /** What the record's result.json says. */
  result: is.optional(is.plain),
});
export type Closed = is.Of<typeof closed>;
