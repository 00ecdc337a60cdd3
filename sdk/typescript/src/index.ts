/** Runs untrusted commands behind walls; see docs/typescript.md. */

export * from "./errors.js";
export { PIPE } from "./pipe.js";
export { Sandbox } from "./sandbox.js";
export type {
  ChangesOptions,
  Command,
  ExecOptions,
  GrepOptions,
  LogsOptions,
  OpenOptions,
  Options,
  ReadOptions,
  StartOptions,
  StreamOptions,
  WaitOptions,
} from "./sandbox.js";
export type { Chunk, Input, StreamName } from "./call.js";
export type { Signal, Stream } from "./stream.js";
export type {
  Change,
  Closed,
  Committed,
  Copied,
  Diff,
  Edited,
  Entry,
  ExecResult,
  FileType,
  Globbed,
  Grepped,
  Info,
  Listing,
  Logs,
  Match,
  Process,
  Reason,
  Stat,
  Stats,
  Termination,
  Usage,
  Violation,
  Waited,
} from "./results.js";
