import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Kept } from "../dist/kept.js";

const bytes = (from: number, count: number): Buffer => Buffer.from(Array.from({ length: count }, (_, i) => (from + i) % 251));

describe("output that is kept", () => {
  test("is its halves, in whatever pieces it came", () => {
    for (const step of [1, 3, 4095, 4096, 5000, 100_000]) {
      const kept = new Kept(40_000);
      const all = bytes(0, 300_001);
      for (let at = 0; at < all.length; at += step) kept.add(all.subarray(at, at + step));
      assert.equal(kept.cut(), 260_001);
      assert.deepEqual(kept.data(), Buffer.concat([all.subarray(0, 20_000), all.subarray(-20_000)]), `${step} bytes a piece`);
    }
    const little = new Kept(10);
    little.add(bytes(0, 10));
    assert.deepEqual([little.data(), little.cut()], [bytes(0, 10), 0]);
  });

  test("costs a byte for a byte", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const kept = new Kept(1_000_000);
    const used = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = used();
    for (let i = 0; i < 1_000_000; i++) kept.add(Buffer.of(i % 251));
    const grown = used() - before;
    assert.ok(grown < 6_000_000, `${grown} bytes more are held`);
    assert.equal(kept.data().length, 1_000_000);
  });
});
