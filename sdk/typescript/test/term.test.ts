import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Atom, atom, bytesOf, decodeFrame, encodeFrame, FrameReader, TermError, textOf, tuple, Tuple } from "../dist/term.js";

const decode = (...bytes: number[]): unknown => decodeFrame(Buffer.from([131, ...bytes]));
const around = (term: Parameters<typeof encodeFrame>[0]): unknown => decodeFrame(encodeFrame(term).subarray(4));
const refused = (work: () => unknown): void => assert.throws(work, TermError);

describe("terms", () => {
  test("come back as they went", () => {
    for (const value of [0, 255, 256, -1, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, true, false, null]) {
      assert.equal(around(value), value);
    }
    assert.deepEqual(around("grüße"), Buffer.from("grüße"));
    assert.deepEqual(around([1, "a", []]), [1, Buffer.from("a"), []]);
    assert.deepEqual(around(atom("x")), new Atom("x"));
    assert.deepEqual(around(tuple(atom("call"), 1)), new Tuple([new Atom("call"), 1]));
    assert.deepEqual(around({ a: 1, b: undefined, c: { d: "e" } }), new Map<string, unknown>([["a", 1], ["c", new Map([["d", Buffer.from("e")]])]]));
  });

  test("integers beyond 2^53 are bigint", () => {
    for (const value of [2n ** 53n, 2n ** 64n, -(2n ** 63n), 2n ** 2000n]) assert.equal(around(value), value);
    assert.equal(around(BigInt(2 ** 40)), 2 ** 40);
    refused(() => encodeFrame(2n ** 3000n));
    refused(() => encodeFrame(1.5));
    refused(() => encodeFrame(2 ** 60));
  });

  test("keys of a Map are binaries", () => {
    assert.deepEqual([...encodeFrame(new Map([["K", "v"]])).subarray(4)], [131, 116, 0, 0, 0, 1, 109, 0, 0, 0, 1, 75, 109, 0, 0, 0, 1, 118]);
  });

  test("what is malformed is refused", () => {
    refused(() => decodeFrame(Buffer.from([130, 97, 1]))); // another version
    refused(() => decode(97, 1, 1)); // something after it
    refused(() => decode(80, 0, 0, 0, 1, 0)); // compressed
    refused(() => decode(116, 0, 0, 0, 2, 119, 1, 97, 97, 1, 119, 1, 97, 97, 2)); // a key twice
    refused(() => decode(116, 0, 0, 0, 1, 97, 1, 97, 1)); // a key that is no atom
    refused(() => decode(108, 0, 0, 0, 1, 97, 1, 97, 2)); // improper
    refused(() => decode(119, 2, 97, 0)); // a zero byte in an atom
    refused(() => decode(119, 1, 0xff)); // no UTF-8
    refused(() => decode(70, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0)); // infinite
    refused(() => decode(103, 119, 0)); // a pid
  });

  test("each beginning of a term is refused", () => {
    const whole = encodeFrame(tuple(atom("reply"), 1, { a: [1, 2 ** 40, "text", null], b: { c: true } })).subarray(4);
    for (let size = 0; size < whole.length; size++) refused(() => decodeFrame(whole.subarray(0, size)));
  });

  test("what announces more than there is costs nothing", () => {
    const before = process.memoryUsage().heapUsed;
    for (const tag of [105, 108, 109, 116]) refused(() => decode(tag, 0xff, 0xff, 0xff, 0xff, 106));
    assert.ok(process.memoryUsage().heapUsed - before < 1 << 22);
  });

  test("depth and number of parts are bounded", () => {
    refused(() => decode(...Array.from({ length: 70 }, () => [104, 1]).flat(), 106));
    refused(() => decodeFrame(Buffer.concat([Buffer.from([131, 108, 0, 5, 0, 0]), Buffer.alloc(5 * 65_536, 106), Buffer.from([106])])));
    refused(() => decodeFrame(Buffer.concat([Buffer.from([131, 104, 5]), ...Array.from({ length: 5 }, () => Buffer.concat([Buffer.from([107, 0xff, 0xff]), Buffer.alloc(65_535, 1)]))])));
  });

  test("any bytes are a term or a TermError", () => {
    const tags = [70, 97, 98, 100, 104, 105, 106, 107, 108, 109, 110, 115, 116, 118, 119];
    let seed = 1;
    const random = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most;
    let good = 0;
    for (let i = 0; i < 20_000; i++) {
      const bytes = Array.from({ length: 1 + random(40) }, () => (random(3) ? random(4) : (tags[random(tags.length)] ?? 0)));
      try {
        decode(tags[random(tags.length)] ?? 0, ...bytes);
        good++;
      } catch (error) {
        assert.ok(error instanceof TermError, String(error));
      }
    }
    assert.ok(good > 10, `${good} were good`);
  });
});

describe("texts", () => {
  test("bytes that are no UTF-8 come back", () => {
    for (const bytes of [[0xff, 0xfe], [97, 0x80, 98], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98, 0x80, 0xf0]]) {
      assert.deepEqual([...bytesOf(textOf(Buffer.from(bytes)))], bytes);
    }
    assert.equal(textOf(Buffer.from("\ufeffgrüße 😀")), "\ufeffgrüße 😀");
    for (let i = 0; i < 65_536; i += 7) {
      const bytes = Buffer.from([i >> 8, i & 255, 0xc3]);
      assert.deepEqual(bytesOf(textOf(bytes)), bytes);
    }
  });

  test("other lone surrogates are U+FFFD", () => {
    assert.deepEqual(bytesOf("a\ud800"), Buffer.from("a\ufffd"));
    assert.deepEqual(bytesOf("\ud800\udcff"), Buffer.from("\ud800\udcff", "utf8")); // a pair is a character
  });
});

describe("frames", () => {
  const read = (pieces: Buffer[]): string[] => {
    const reader = new FrameReader(100);
    return pieces.flatMap((piece) => [...reader.push(piece)].map((frame) => frame.toString("latin1")));
  };

  test("are found wherever they are cut", () => {
    const stream = Buffer.from("\0\0\0\x02ab\0\0\0\0\0\0\0\x03cde", "latin1");
    for (let cut = 0; cut <= stream.length; cut++) {
      assert.deepEqual(read([stream.subarray(0, cut), stream.subarray(cut)]), ["ab", "", "cde"]);
    }
    assert.deepEqual(read([...stream].map((byte) => Buffer.of(byte))), ["ab", "", "cde"]);
  });

  test("one that is too long is refused when it is announced", () => {
    refused(() => read([Buffer.from([0, 0, 0, 101])]));
    refused(() => read([Buffer.from([0xff, 0xff, 0xff, 0xff])]));
  });
});
