/**
 * One call. Of its output 256 KiB may be under way; they are granted again as the caller takes them,
 * so who takes his time slows his own command down, holds up no other call and fills no memory.
 */

import { Cancelled, type CaissonError, failureOf, Timeout } from "./errors.js";
import { Link } from "./link.js";
import type { Violation } from "./results.js";
import { ShapeError } from "./shape.js";
import { atom, tuple, type Term } from "./term.js";

export const WINDOW = 262_144;
const PIECE = 65_536;
const GRANT = WINDOW / 4;

export type StreamName = "stdout" | "stderr" | "tty";

/** A piece of output. */
export interface Chunk {
  readonly stream: StreamName;
  readonly data: Buffer;
}

/** What a command or a file is given: all of it, or as it comes. A string goes as UTF-8. */
export type Input =
  | string
  | Uint8Array
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>;

export interface CallOptions {
  /** Ends the call, and everything it started. */
  signal?: AbortSignal | undefined;
  /** Kept here; verbs that have a clock of their own are sent theirs. */
  timeoutMs?: number | undefined;
  onViolation?: ((violation: Violation) => void) | undefined;
  input?: Input | undefined;
  /** Sees each piece of output when it is taken. */
  tap?: ((chunk: Chunk) => void) | undefined;
}

export function cancelledBy(signal: AbortSignal | undefined, stage: string): Cancelled {
  return new Cancelled("cancelled", stage, `${stage} was cancelled`, { cause: signal?.reason });
}

const streams: ReadonlySet<string> = new Set<StreamName>(["stdout", "stderr", "tty"]);

export class Call {
  private queue: Chunk[] = [];
  private wake: (() => void) | undefined;
  private grow: (() => void) | undefined;
  private window = WINDOW;
  private used = 0;
  private inputWindow = WINDOW;
  private answer: Term | undefined;
  private error: unknown;
  private isOver = false;
  private isCancelled = false;
  private isLate = false;
  private isMute = false;
  private thrown: { error: unknown } | undefined;
  private timer: NodeJS.Timeout | undefined;
  private finishUp!: () => void;
  readonly over = new Promise<void>((resolve) => (this.finishUp = resolve));
  private readonly onAbort = (): void => this.cancel();

  constructor(
    private readonly link: Link,
    readonly ref: number,
    readonly verb: string,
    private readonly options: CallOptions,
  ) {}

  /** When its frame is on its way. */
  start(): void {
    const { signal, timeoutMs, input } = this.options;
    signal?.addEventListener("abort", this.onAbort, { once: true });
    if (signal?.aborted) this.cancel();
    if (timeoutMs) {
      this.timer = setTimeout(() => {
        this.isLate = true;
        this.cancel();
      }, timeoutMs);
    }
    if (input !== undefined) void this.feed(input);
  }

  /** When nobody waits for it any more. */
  stop(): void {
    this.options.signal?.removeEventListener("abort", this.onAbort);
    clearTimeout(this.timer);
    if (!this.isOver) this.link.send(tuple(atom("cancel"), this.ref));
    this.isOver = true;
    this.finishUp();
    this.stir();
  }

  cancel(): void {
    if (this.isOver || this.isCancelled) return;
    this.isCancelled = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.link.expire(), Link.cancelMs);
    this.link.send(tuple(atom("cancel"), this.ref));
    this.stir();
  }

  /** A function of the caller's threw: nothing more is for him. */
  private refuse(error: unknown): void {
    this.thrown ??= { error };
    this.isMute = true;
    this.cancel();
  }

  signal(number: number): void {
    if (!this.isOver) this.link.send(tuple(atom("signal"), this.ref, number));
  }

  resize(rows: number, columns: number): void {
    if (!this.isOver) this.link.send(tuple(atom("resize"), this.ref, rows, columns));
  }

  // ---- from the link -----------------------------------------------------------------------------

  onData(stream: string, data: Buffer): void {
    if (!streams.has(stream) || data.length === 0 || data.length > PIECE) throw new ShapeError("data is malformed");
    if (data.length > this.window) throw new ShapeError("more data came than was asked for");
    this.window -= data.length;
    this.queue.push({ stream: stream as StreamName, data });
    this.stir();
  }

  onWindow(bytes: number): void {
    this.inputWindow = Math.min(WINDOW, this.inputWindow + bytes);
    this.stir();
  }

  onViolation(seen: Violation): void {
    if (this.isMute) return;
    try {
      this.options.onViolation?.(seen);
    } catch (error) {
      this.refuse(error);
    }
  }

  onReply(map: Term): void {
    this.answer = map;
    this.finish();
  }

  onFailed(reason: string, detail: string): void {
    if (reason === "cancelled" && this.isLate) {
      this.error = new Timeout("etimedout", this.verb, "the call took longer than its time");
    } else if (reason === "cancelled" && this.options.signal?.aborted) {
      this.error = cancelledBy(this.options.signal, this.verb);
    } else {
      this.error = failureOf(reason, this.verb, detail);
    }
    this.finish();
  }

  onLost(error: CaissonError): void {
    this.error = error;
    this.finish();
  }

  private finish(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    this.finishUp();
    this.stir();
  }

  private stir(): void {
    this.wake?.();
    this.grow?.();
  }

  // ---- for who made it ---------------------------------------------------------------------------

  /** The next piece of output; undefined: there is no more. */
  async next(): Promise<Chunk | undefined> {
    for (;;) {
      const chunk = this.queue.shift();
      if (chunk) {
        this.grant(chunk.data.length);
        this.options.tap?.(chunk);
        if (!this.isMute) return chunk;
      } else if (this.isOver) {
        return undefined;
      } else {
        await new Promise<void>((resolve) => (this.wake = resolve));
        this.wake = undefined;
      }
    }
  }

  /** In quarters of the window, so a command that prints is not asked to wait for each piece. */
  private grant(bytes: number): void {
    this.used += bytes;
    if (this.used < GRANT || this.isOver) return;
    this.window += this.used;
    this.link.send(tuple(atom("window"), this.ref, this.used));
    this.used = 0;
  }

  /** Gives the output to `sink`, which is waited for, and then the answer. */
  async drain(sink?: (chunk: Chunk) => void | Promise<void>): Promise<Term> {
    for (let chunk = await this.next(); chunk; chunk = await this.next()) {
      try {
        await sink?.(chunk);
      } catch (error) {
        this.refuse(error);
      }
    }
    return this.conclude();
  }

  /** Throws the rest of the output away. */
  async discard(): Promise<void> {
    while (await this.next()) continue;
  }

  conclude(): Term {
    if (this.thrown) throw this.thrown.error;
    if (this.answer === undefined) throw this.error;
    return this.answer;
  }

  /** Was it ended by its AbortSignal? */
  get wasAborted(): boolean {
    return this.isCancelled && !this.isLate && this.options.signal?.aborted === true;
  }

  // ---- input -------------------------------------------------------------------------------------

  /** Until its end or the call's, whichever is first: who never says anything holds nothing up. */
  private async feed(input: Input): Promise<void> {
    const pieces = iteratorOf(input);
    try {
      for (;;) {
        const next = await Promise.race([pieces.next(), this.over]);
        if (!next || this.isOver || this.isCancelled) break;
        if (next.done) {
          this.link.send(tuple(atom("data"), this.ref, atom("stdin"), atom("eof")));
          return;
        }
        await this.write(typeof next.value === "string" ? Buffer.from(next.value, "utf8") : next.value);
      }
      void Promise.resolve(pieces.return?.()).catch(() => {});
    } catch (error) {
      this.refuse(error);
    }
  }

  private async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      await this.link.room();
      while (this.inputWindow === 0 && !this.isOver && !this.isCancelled) {
        await new Promise<void>((resolve) => (this.grow = resolve));
        this.grow = undefined;
      }
      if (this.isOver || this.isCancelled) return;
      const piece = bytes.subarray(at, at + Math.min(PIECE, this.inputWindow));
      this.inputWindow -= piece.length;
      this.link.send(tuple(atom("data"), this.ref, atom("stdin"), piece));
      at += piece.length;
    }
  }
}

type Pieces = Iterator<string | Uint8Array> | AsyncIterator<string | Uint8Array>;

function iteratorOf(input: Input): Pieces {
  if (typeof input === "string" || input instanceof Uint8Array) return [input][Symbol.iterator]();
  return Symbol.asyncIterator in input ? input[Symbol.asyncIterator]() : input[Symbol.iterator]();
}
