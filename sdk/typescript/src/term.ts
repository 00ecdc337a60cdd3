/**
 * Erlang's external term format, as far as messages use it (docs/protocol.md). What is decoded may
 * have been written by anybody: depth, number of parts and sizes are checked before anything is
 * made of them, and what no message has a use for (pids, ports, functions) is refused.
 */

const VERSION = 131;
const MAX_DEPTH = 64;
const MAX_PARTS = 262_144;
const MAX_BIG_BYTES = 255;

const Tag = {
  float: 70,
  smallInteger: 97,
  integer: 98,
  atomLatin1: 100,
  smallTuple: 104,
  largeTuple: 105,
  nil: 106,
  string: 107,
  list: 108,
  binary: 109,
  smallBig: 110,
  smallAtomLatin1: 115,
  map: 116,
  atomUtf8: 118,
  smallAtomUtf8: 119,
} as const;

/** An atom but `true`, `false` and `null`, which are JavaScript's own. */
export class Atom {
  constructor(readonly name: string) {}
}

export class Tuple {
  constructor(readonly items: readonly Term[]) {}
}

/** A map whose keys are atoms. */
export type TermMap = ReadonlyMap<string, Term>;

/** What decoding gives. Integers beyond 2^53 are bigint. */
export type Term = number | bigint | boolean | null | Atom | Buffer | Tuple | readonly Term[] | TermMap;

/**
 * What can be encoded: a string is a binary, an object a map with atoms as keys (those that are
 * undefined are left out), a Map one with binaries.
 */
export type Encodable =
  | number
  | bigint
  | boolean
  | null
  | string
  | Atom
  | Uint8Array
  | Tuple
  | readonly Encodable[]
  | ReadonlyMap<string, string>
  | EncodableTuple
  | { readonly [key: string]: Encodable | undefined };

class EncodableTuple {
  constructor(readonly parts: readonly Encodable[]) {}
}

export const atom = (name: string): Atom => new Atom(name);
export const tuple = (...parts: readonly Encodable[]): EncodableTuple => new EncodableTuple(parts);

export class TermError extends Error {
  override readonly name = "TermError";
}

// ---- texts: names on Linux are bytes, and those that are no UTF-8 come back as they went ---------

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const ESCAPE = 0xdc00;

/** How many bytes the UTF-8 character at `at` has; 0: there is none. */
function characterAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  const size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size < 2 || at + size > bytes.length) return size === 1 ? 1 : 0;
  try {
    strict.decode(bytes.subarray(at, at + size));
    return size;
  } catch {
    return 0;
  }
}

/** Bytes as a string; a byte that is no UTF-8 is a lone surrogate, U+DC80 to U+DCFF. */
export function textOf(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    let text = "";
    for (let at = 0; at < bytes.length; ) {
      const size = characterAt(bytes, at);
      text += size ? strict.decode(bytes.subarray(at, at + size)) : String.fromCharCode(ESCAPE + (bytes[at] ?? 0));
      at += size || 1;
    }
    return text;
  }
}

/** The bytes that `textOf` made this from; any other string as UTF-8. */
export function bytesOf(text: string): Buffer {
  if (!/[\udc80-\udcff]/u.test(text)) return Buffer.from(text, "utf8");
  const parts: Buffer[] = [];
  for (const character of text) {
    const code = character.length === 1 ? character.charCodeAt(0) : 0;
    const isEscape = code >= ESCAPE + 0x80 && code <= ESCAPE + 0xff;
    parts.push(isEscape ? Buffer.of(code - ESCAPE) : Buffer.from(character, "utf8"));
  }
  return Buffer.concat(parts);
}

// ---- encoding ------------------------------------------------------------------------------------

function head(tag: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(5);
  bytes.writeUInt8(tag, 0);
  bytes.writeUInt32BE(size, 1);
  return bytes;
}

function putInteger(value: bigint): Buffer {
  if (value >= -0x8000_0000n && value <= 0x7fff_ffffn) {
    const bytes = Buffer.allocUnsafe(5);
    bytes.writeUInt8(Tag.integer, 0);
    bytes.writeInt32BE(Number(value), 1);
    return bytes;
  }
  const magnitude: number[] = [];
  for (let rest = value < 0n ? -value : value; rest > 0n; rest >>= 8n) magnitude.push(Number(rest & 255n));
  if (magnitude.length > MAX_BIG_BYTES) throw new TermError("the integer is too large");
  return Buffer.from([Tag.smallBig, magnitude.length, value < 0n ? 1 : 0, ...magnitude]);
}

function putAtom(name: string): Buffer {
  const bytes = Buffer.from(name, "utf8");
  if (bytes.length > 255 || name.includes("\0")) throw new TermError("that is no atom");
  return Buffer.concat([Buffer.of(Tag.smallAtomUtf8, bytes.length), bytes]);
}

function putBinary(bytes: Uint8Array, parts: Uint8Array[]): void {
  parts.push(head(Tag.binary, bytes.length), bytes);
}

function putMap(entries: readonly (readonly [string, Encodable])[], hasTextKeys: boolean, parts: Uint8Array[]): void {
  parts.push(head(Tag.map, entries.length));
  for (const [key, value] of entries) {
    if (hasTextKeys) putBinary(bytesOf(key), parts);
    else parts.push(putAtom(key));
    put(value, parts);
  }
}

function putObject(value: object, parts: Uint8Array[]): void {
  if (value instanceof Atom) parts.push(putAtom(value.name));
  else if (value instanceof Uint8Array) putBinary(value, parts);
  else if (value instanceof EncodableTuple) {
    parts.push(Buffer.of(Tag.smallTuple, value.parts.length));
    for (const part of value.parts) put(part, parts);
  } else if (Array.isArray(value)) {
    if (value.length > 0) parts.push(head(Tag.list, value.length));
    for (const item of value as Encodable[]) put(item, parts);
    parts.push(Buffer.of(Tag.nil));
  } else if (value instanceof Map) {
    putMap([...(value as ReadonlyMap<string, string>)], true, parts);
  } else {
    const entries = Object.entries(value) as [string, Encodable | undefined][];
    putMap(entries.filter((entry): entry is [string, Encodable] => entry[1] !== undefined), false, parts);
  }
}

function put(value: Encodable, parts: Uint8Array[]): void {
  if (typeof value === "string") putBinary(bytesOf(value), parts);
  else if (typeof value === "boolean" || value === null) parts.push(putAtom(String(value)));
  else if (typeof value === "bigint") parts.push(putInteger(value));
  else if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new TermError(`${value} is no integer`);
    parts.push(putInteger(BigInt(value)));
  } else if (typeof value === "object") putObject(value, parts);
  else throw new TermError(`a ${typeof value} cannot be sent`);
}

/** A frame: four bytes of length, the version byte, the term. */
export function encodeFrame(value: Encodable): Buffer {
  const parts: Uint8Array[] = [];
  put(value, parts);
  const size = parts.reduce((sum, part) => sum + part.length, 1);
  const start = Buffer.allocUnsafe(5);
  start.writeUInt32BE(size, 0);
  start.writeUInt8(VERSION, 4);
  return Buffer.concat([start, ...parts], size + 4);
}

// ---- decoding ------------------------------------------------------------------------------------

class Decoder {
  private at = 0;
  private parts = 0;

  constructor(private readonly bytes: Buffer) {}

  whole(): Term {
    if (this.take(1).readUInt8() !== VERSION) throw new TermError("not this version of the term format");
    const term = this.term(0);
    if (this.at !== this.bytes.length) throw new TermError("there are bytes after the term");
    return term;
  }

  private take(size: number): Buffer {
    if (size > this.bytes.length - this.at) throw new TermError("the term is cut");
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  /** A count of parts that have at least a byte each: nothing is made for parts that are not there. */
  private count(size: number): number {
    if (size > this.bytes.length - this.at) throw new TermError("the term is cut");
    return size;
  }

  private term(depth: number): Term {
    if (depth > MAX_DEPTH) throw new TermError("the term is nested too deep");
    if (++this.parts > MAX_PARTS) throw new TermError("the term has too many parts");
    const tag = this.take(1).readUInt8();
    switch (tag) {
      case Tag.smallInteger:
        return this.take(1).readUInt8();
      case Tag.integer:
        return this.take(4).readInt32BE();
      case Tag.float:
        return this.float();
      case Tag.smallBig:
        return this.big(this.take(1).readUInt8());
      case Tag.binary:
        return Buffer.from(this.take(this.take(4).readUInt32BE()));
      case Tag.nil:
        return [];
      case Tag.list:
        return this.list(this.count(this.take(4).readUInt32BE()), depth);
      case Tag.string:
        return this.bytesList(this.take(2).readUInt16BE());
      case Tag.smallTuple:
        return new Tuple(this.items(this.count(this.take(1).readUInt8()), depth));
      case Tag.largeTuple:
        return new Tuple(this.items(this.count(this.take(4).readUInt32BE()), depth));
      case Tag.map:
        return this.map(this.count(this.take(4).readUInt32BE()), depth);
      default:
        return this.atom(tag);
    }
  }

  private items(count: number, depth: number): Term[] {
    const items: Term[] = [];
    for (let i = 0; i < count; i++) items.push(this.term(depth + 1));
    return items;
  }

  private list(count: number, depth: number): Term[] {
    const items = this.items(count, depth);
    if (this.take(1).readUInt8() !== Tag.nil) throw new TermError("the list is improper");
    return items;
  }

  private bytesList(count: number): Term[] {
    this.parts += count;
    if (this.parts > MAX_PARTS) throw new TermError("the term has too many parts");
    return [...this.take(count)];
  }

  private float(): number {
    const value = this.take(8).readDoubleBE();
    if (!Number.isFinite(value)) throw new TermError("a number is not finite");
    return value;
  }

  private big(size: number): number | bigint {
    const isNegative = this.take(1).readUInt8() !== 0;
    const digits = Buffer.from(this.take(size)).reverse().toString("hex");
    const magnitude = BigInt(`0x${digits || "0"}`);
    const value = isNegative ? -magnitude : magnitude;
    return magnitude <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
  }

  private atomName(tag: number): string {
    const isLong = tag === Tag.atomUtf8 || tag === Tag.atomLatin1;
    const isUtf8 = tag === Tag.atomUtf8 || tag === Tag.smallAtomUtf8;
    if (!isLong && tag !== Tag.smallAtomUtf8 && tag !== Tag.smallAtomLatin1) {
      throw new TermError(`no message has a part of type ${tag}`);
    }
    const bytes = this.take(isLong ? this.take(2).readUInt16BE() : this.take(1).readUInt8());
    if (bytes.length > 4 * 255 || bytes.includes(0)) throw new TermError("an atom is malformed");
    try {
      return isUtf8 ? strict.decode(bytes) : bytes.toString("latin1");
    } catch {
      throw new TermError("an atom is malformed");
    }
  }

  private atom(tag: number): Atom | boolean | null {
    const name = this.atomName(tag);
    if (name === "null") return null;
    return name === "true" || name === "false" ? name === "true" : new Atom(name);
  }

  private map(count: number, depth: number): TermMap {
    const map = new Map<string, Term>();
    for (let i = 0; i < count; i++) {
      if (++this.parts > MAX_PARTS) throw new TermError("the term has too many parts");
      const key = this.atomName(this.take(1).readUInt8());
      if (map.has(key)) throw new TermError("a map has a key twice");
      map.set(key, this.term(depth + 1));
    }
    return map;
  }
}

/** The term of a frame, without its length. */
export function decodeFrame(bytes: Buffer): Term {
  return new Decoder(bytes).whole();
}

/** Cuts a stream into frames. What a frame may weigh is checked before it is gathered. */
export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  constructor(private readonly maxBytes: number) {}

  /** The frames that are whole now, without their lengths. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.chunks.push(chunk);
    this.size += chunk.length;
    for (;;) {
      if (this.size < 4) return;
      const wanted = this.gather(4).readUInt32BE();
      if (wanted > this.maxBytes) throw new TermError(`a frame of ${wanted} bytes was announced`);
      if (this.size < 4 + wanted) return;
      const frame = this.gather(4 + wanted).subarray(4, 4 + wanted);
      this.drop(4 + wanted);
      yield frame;
    }
  }

  /** The first chunk, with at least so many bytes. */
  private gather(size: number): Buffer {
    let first = this.chunks[0] ?? Buffer.alloc(0);
    if (first.length < size) {
      first = Buffer.concat(this.chunks, this.size);
      this.chunks = [first];
    }
    return first;
  }

  private drop(size: number): void {
    const first = this.chunks[0];
    if (!first) return;
    if (first.length === size) this.chunks.shift();
    else this.chunks[0] = first.subarray(size);
    this.size -= size;
  }
}
