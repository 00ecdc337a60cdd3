/** So many at once, the others in their order: ten thousand calls are ten thousand promises, not frames. */

import { cancelledBy } from "./call.js";

export class Gate {
  private inside = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly most: number) {}

  /** Waits for a place and gives what leaves it. Rejects when `signal` aborts before. */
  async enter(signal: AbortSignal | undefined, stage: string): Promise<() => void> {
    if (signal?.aborted) throw cancelledBy(signal, stage);
    if (this.inside >= this.most) await this.queue(signal, stage);
    else this.inside++;
    return () => this.leave();
  }

  private queue(signal: AbortSignal | undefined, stage: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.waiting.delete(come);
        reject(cancelledBy(signal, stage));
      };
      const come = (): void => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.waiting.add(come);
    });
  }

  /** A place that somebody waits for is handed over, not given up. */
  private leave(): void {
    const next = this.waiting.values().next();
    if (next.done) {
      this.inside--;
      return;
    }
    this.waiting.delete(next.value);
    next.value();
  }
}
