/**
 * A call whose output is taken as it comes. What is not taken is not sent: the command waits. When
 * the iteration is left early the call is cancelled.
 */

import { constants } from "node:os";
import type { Call, Chunk } from "./call.js";
import { Invalid } from "./errors.js";
import type { Pipe } from "./pipe.js";
import type { Term } from "./term.js";

export type Signal = number | NodeJS.Signals;

export function signalNumber(signal: Signal): number {
  const number = typeof signal === "number" ? signal : constants.signals[signal];
  if (!Number.isInteger(number) || number < 1 || number > 64) {
    throw new Invalid("invalid", "signal", `${signal} is no signal`);
  }
  return number;
}

/** Starts a call; `use` is given it when it has begun. */
export type Begin = (use: (call: Call) => Promise<void>) => Promise<void>;

export class Stream<T> implements AsyncIterable<Chunk> {
  readonly #begun: Promise<Call>;
  readonly #result: Promise<T>;
  readonly #pipe: Pipe | undefined;
  #isTaken = false;

  /** @internal */
  constructor(begin: Begin, conclude: (answer: Term, call: Call) => T, pipe?: Pipe) {
    this.#pipe = pipe;
    let hand!: (call: Call) => void;
    let fail!: (error: unknown) => void;
    this.#begun = new Promise((resolve, reject) => {
      hand = resolve;
      fail = reject;
    });
    this.#result = begin((call) => {
      hand(call);
      return call.over;
    }).then(
      async () => {
        const call = await this.#begun;
        return conclude(call.conclude(), call);
      },
      (error: unknown) => {
        fail(error);
        throw error;
      },
    );
    this.#begun.catch(() => {}); // whoever iterates or asks for the result is told
    this.#result.catch(() => {}).then(() => pipe?.over());
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Chunk, void, undefined> {
    const call = await this.#take();
    let isAtEnd = false;
    try {
      for (let chunk = await call.next(); chunk; chunk = await call.next()) yield chunk;
      isAtEnd = true;
      await this.#result; // an error that ended it ends the iteration too
    } finally {
      if (!isAtEnd) {
        call.cancel();
        await call.discard();
      }
    }
  }

  #take(): Promise<Call> {
    if (this.#isTaken) throw new Invalid("invalid", "stream", "this output is taken already: iterate once");
    this.#isTaken = true;
    return this.#begun;
  }

  /** How it ended. Output that nobody iterates over is thrown away. */
  async result(): Promise<T> {
    if (!this.#isTaken) await (await this.#take()).discard();
    return this.#result;
  }

  #input(): Pipe {
    if (!this.#pipe) throw new Invalid("invalid", "stream", "this stream is not written to: its stdin is not PIPE");
    return this.#pipe;
  }

  /**
   * Input, for a stream with `stdin: PIPE`. Done when the command's window has taken it, or the command has ended; a
   * command that waits for its output to be taken takes no input meanwhile.
   */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#input().write(data);
  }

  /** The end of the input. */
  closeStdin(): void {
    this.#input().close();
  }

  /** Ends it; `result()` says so. */
  cancel(): void {
    void this.#begun.then((call) => call.cancel()).catch(() => {});
  }

  /** To the command's process group; TERM and KILL to its tree. */
  signal(signal: Signal): void {
    const number = signalNumber(signal);
    void this.#begun.then((call) => call.signal(number)).catch(() => {});
  }

  /** The size of its terminal. */
  resize(rows: number, columns: number): void {
    void this.#begun.then((call) => call.resize(rows, columns)).catch(() => {});
  }
}
