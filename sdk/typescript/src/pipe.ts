/** Input that is written while its command runs. */

import { Invalid } from "./errors.js";

/** The `stdin` of a stream that is written to. */
export const PIPE: unique symbol = Symbol("caisson.PIPE");

type Piece = { readonly data: string | Uint8Array; readonly done: () => void };

/** What is written, for who feeds the command; a write is done when the next piece is asked for. */
export class Pipe implements AsyncIterable<string | Uint8Array> {
  #pieces: Piece[] = [];
  #taken: Piece | undefined;
  #wake: (() => void) | undefined;
  #isClosed = false;
  #isOver = false;

  write(data: string | Uint8Array): Promise<void> {
    if (this.#isClosed) throw new Invalid("invalid", "stream", "the end of this input was said: nothing comes after it");
    if (this.#isOver) return Promise.resolve();
    return new Promise((done) => {
      this.#pieces.push({ data, done });
      this.#wake?.();
    });
  }

  /** The end of the input. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  /** Nobody reads it any more: who waits, waits for nothing. */
  over(): void {
    this.#isOver = true;
    for (const piece of [this.#taken, ...this.#pieces]) piece?.done();
    this.#taken = undefined;
    this.#pieces = [];
    this.#wake?.();
  }

  async #next(): Promise<IteratorResult<string | Uint8Array, undefined>> {
    this.#taken?.done();
    this.#taken = undefined;
    while (this.#pieces.length === 0 && !this.#isClosed && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    this.#taken = this.#pieces.shift();
    return this.#taken ? { done: false, value: this.#taken.data } : { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): AsyncIterator<string | Uint8Array, undefined> {
    return {
      next: () => this.#next(),
      return: () => {
        this.over();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }
}
