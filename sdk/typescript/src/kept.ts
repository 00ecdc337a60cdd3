/**
 * Output that is kept: all of it, or its first and its last half. What a command writes is nobody's
 * to bound but ours.
 */

import type { Chunk } from "./call.js";

/** A piece that is at least so large is worth an object of its own. */
const BLOCK = 4096;

/** Pieces one after the other. Small ones are joined: who writes byte by byte must not cost an object a byte. */
class Pieces {
  size = 0;
  private blocks: Buffer[] = [];
  private loose: Buffer[] = [];

  add(bytes: Buffer): void {
    this.size += bytes.length;
    if (bytes.length < BLOCK) this.loose.push(bytes);
    if (bytes.length >= BLOCK || this.loose.length >= BLOCK) this.join();
    if (bytes.length >= BLOCK) this.blocks.push(bytes);
  }

  private join(): void {
    if (this.loose.length > 0) this.blocks.push(Buffer.concat(this.loose));
    this.loose = [];
  }

  /** All of them, or so many bytes of their end; nothing else stays. */
  cut(most: number): Buffer {
    const all = Buffer.concat([...this.blocks, ...this.loose]);
    const end = all.subarray(Math.max(0, all.length - most));
    this.blocks = [end];
    this.loose = [];
    this.size = end.length;
    return end;
  }
}

export class Kept {
  private readonly first = new Pieces();
  private readonly last = new Pieces();
  private total = 0;
  private readonly firstMost: number;
  private readonly lastMost: number;

  constructor(most: number) {
    this.lastMost = Math.floor(most / 2);
    this.firstMost = most - this.lastMost;
  }

  add(bytes: Buffer): void {
    const head = bytes.subarray(0, this.firstMost - this.first.size);
    this.total += bytes.length;
    if (head.length > 0) this.first.add(head);
    if (bytes.length > head.length) this.addLast(bytes.subarray(head.length));
  }

  private addLast(bytes: Buffer): void {
    this.last.add(bytes);
    // Cut now and then, so that a byte costs a byte and not a copy of all that is kept.
    if (this.last.size > 2 * this.lastMost + 65_536) this.lastHalf();
  }

  private lastHalf(): Buffer {
    return this.last.cut(this.lastMost);
  }

  /** What was kept. */
  data(): Buffer {
    return Buffer.concat([this.first.cut(this.firstMost), this.lastHalf()]);
  }

  /** Bytes that are missing between the halves. */
  cut(): number {
    return this.total - this.first.size - this.lastHalf().length;
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
