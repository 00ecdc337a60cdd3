/**
 * Output that is kept: all of it, or its first and its last half. What a command writes is nobody's
 * to bound but ours.
 */

import type { Chunk } from "./call.js";

export class Kept {
  private readonly first: Buffer[] = [];
  private last: Buffer[] = [];
  private firstSize = 0;
  private lastSize = 0;
  private total = 0;
  private readonly firstMost: number;
  private readonly lastMost: number;

  constructor(most: number) {
    this.lastMost = Math.floor(most / 2);
    this.firstMost = most - this.lastMost;
  }

  add(bytes: Buffer): void {
    const head = bytes.subarray(0, this.firstMost - this.firstSize);
    this.total += bytes.length;
    this.firstSize += head.length;
    if (head.length > 0) this.first.push(head);
    if (bytes.length > head.length) this.addLast(bytes.subarray(head.length));
  }

  private addLast(bytes: Buffer): void {
    this.last.push(bytes);
    this.lastSize += bytes.length;
    // Cut now and then, so that a byte costs a byte and not a copy of all that is kept.
    if (this.lastSize > 2 * this.lastMost + 65_536 || this.last.length > 4096) this.lastHalf();
  }

  private lastHalf(): Buffer {
    const all = Buffer.concat(this.last);
    const half = all.subarray(Math.max(0, all.length - this.lastMost));
    this.last = [half];
    this.lastSize = half.length;
    return half;
  }

  /** What was kept. */
  data(): Buffer {
    return Buffer.concat([...this.first, this.lastHalf()]);
  }

  /** Bytes that are missing between the halves. */
  cut(): number {
    return this.total - this.firstSize - this.lastHalf().length;
  }
}

/** Both streams, each for itself and as they came. */
export class Outputs {
  readonly stdout: Kept;
  readonly stderr: Kept;
  readonly merged: Kept;

  constructor(keep: number) {
    this.stdout = new Kept(keep);
    this.stderr = new Kept(keep);
    this.merged = new Kept(keep);
  }

  readonly add = ({ stream, data }: Chunk): void => {
    (stream === "stderr" ? this.stderr : this.stdout).add(data);
    this.merged.add(data);
  };
}
