/**
 * The stream to a sandbox's monitor: frames in, frames out, calls by their number. What comes is
 * bounded by what was asked for; anything malformed or out of turn ends the link, and with it the
 * sandbox, for a monitor without a caller ends it.
 */

import type { Readable, Writable } from "node:stream";
import { Call, type CallOptions } from "./call.js";
import { type CaissonError, errorOf, failureOf, Invalid, Lost, NotSupported, PolicyRefused, Timeout, TooLarge, VersionMismatch } from "./errors.js";
import { Gate } from "./gate.js";
import * as is from "./shape.js";
import { Atom, atom, decodeFrame, encodeFrame, FrameReader, tuple, Tuple, type Encodable, type Term } from "./term.js";
import { closed, type Closed, type Info, opened, type Violation, violation } from "./results.js";

/** Of docs/protocol.md. */
export const PROTOCOL = 1;
const MAX_FRAME = 5_242_880; // the largest message there is: reply, call
const CANCEL_MS = 30_000; // in which a cancel is answered
const AT_ONCE = 28; // calls under way; a monitor takes 32 of one client
const AT_ONCE_SHORT = 4; // of those that end others: never behind what they are to end
const SHORT = new Set(["kill", "ps", "stats"]);

const farewell = is.record({
  code: is.fallback(is.anyText, "lost"),
  stage: is.fallback(is.anyText, "monitor"),
  text: is.optional(is.anyText),
  reason: is.optional(is.anyText),
});

/** What the frames go through. */
export interface Wire {
  readonly program: string;
  readonly input: Writable;
  readonly output: Readable;
  ref(): void;
  unref(): void;
  /** What was said beside the frames, when it ended. */
  said(): string;
  /** Ends it at once. */
  destroy(): void;
}

export type Fields = { readonly [key: string]: Encodable | undefined };

export class Link {
  readonly verbs = new Set<string>();
  readonly enforces = new Set<string>();
  onViolation: ((violation: Violation) => void) | undefined;
  private readonly calls = new Map<number, Call>();
  private readonly reader = new FrameReader(MAX_FRAME);
  private readonly gate = new Gate(AT_ONCE);
  private readonly shortGate = new Gate(AT_ONCE_SHORT);
  private readonly whenEnded: Promise<void>;
  private ended!: () => void;
  private lastRef = 0;
  private holders = 0;
  private info: Info | undefined;
  /** Of `open` or `close`, while one is under way. */
  private asked: { ref: number; done: (answer: Term) => void; failed: (error: CaissonError) => void } | undefined;
  private lostBy: CaissonError | undefined;

  constructor(private readonly wire: Wire) {
    this.whenEnded = new Promise((resolve) => (this.ended = resolve));
    wire.output.on("data", (chunk: Buffer) => this.take(chunk));
    wire.output.on("end", () => this.atEnd());
    wire.output.on("close", () => this.atEnd());
    wire.output.on("error", () => this.atEnd());
    wire.input.on("error", () => {}); // its last words are still to be read
  }

  /** Keeps the program alive while something is waited for, and no longer. */
  async holding<T>(work: () => Promise<T>): Promise<T> {
    if (this.holders++ === 0) this.wire.ref();
    try {
      return await work();
    } finally {
      if (--this.holders === 0) this.wire.unref();
    }
  }

  /** Makes the sandbox, and waits until its wall stands. */
  async open(fields: Fields, timeoutMs: number): Promise<Info> {
    const answer = await this.ask("open", [fields], timeoutMs);
    const { protocol, caisson } = versions(answer, "open");
    if (protocol !== PROTOCOL) {
      const theirs = `${this.wire.program} (caisson ${caisson}) speaks version ${protocol} of the protocol`;
      throw this.lose(
        new VersionMismatch("version", "open", `${theirs}, this package version ${PROTOCOL}: install the two together`),
      );
    }
    const info = opened(answer, "open");
    for (const verb of info.verbs) this.verbs.add(verb);
    for (const feature of info.enforces) this.enforces.add(feature);
    this.info = info;
    return info;
  }

  /** Ends the sandbox: answered when nothing of it is left. */
  async close(timeoutMs: number): Promise<Closed> {
    return closed(await this.ask("close", [], timeoutMs), "close");
  }

  private ask(what: "open" | "close", parts: readonly Encodable[], timeoutMs: number): Promise<Term> {
    const ref = ++this.lastRef;
    return this.holding(async () => {
      if (this.lostBy) throw this.lostBy;
      const answered = new Promise<Term>((done, failed) => (this.asked = { ref, done, failed }));
      const late = setTimeout(() => {
        this.lose(new Timeout("etimedout", what, `it did not answer ${what} within ${timeoutMs} ms`));
      }, timeoutMs);
      this.send(tuple(atom(what), ref, ...parts));
      try {
        return await answered;
      } finally {
        clearTimeout(late);
        this.asked = undefined;
      }
    });
  }

  get lost(): CaissonError | undefined {
    return this.lostBy;
  }

  /** Settles when the stream is over: nothing of the sandbox is left, if it was asked to end. */
  get end(): Promise<void> {
    return this.whenEnded;
  }

  // ---- out ---------------------------------------------------------------------------------------

  send(message: Encodable): void {
    if (!this.lostBy && this.wire.input.writable) this.wire.input.write(encodeFrame(message));
  }

  /** Waits until the other side has taken what it was sent. */
  async room(): Promise<void> {
    while (!this.lostBy && this.wire.input.writableNeedDrain) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.wire.input.off("drain", done).off("close", done);
          resolve();
        };
        this.wire.input.on("drain", done).on("close", done);
      });
    }
  }

  /** Begins a call, in its turn, and hands it to `use`, which returns when it is over. */
  async call<T>(verb: string, fields: Fields, options: CallOptions, use: (call: Call) => Promise<T>): Promise<T> {
    if (!this.lostBy && !this.verbs.has(verb)) {
      throw new NotSupported("not_supported", verb, `this sandbox does not have ${verb}`);
    }
    const gate = SHORT.has(verb) ? this.shortGate : this.gate;
    return this.holding(async () => {
      const leave = await gate.enter(options.signal, verb);
      try {
        return await this.begin(verb, fields, options, use);
      } finally {
        leave();
      }
    });
  }

  private async begin<T>(
    verb: string,
    fields: Fields,
    options: CallOptions,
    use: (call: Call) => Promise<T>,
  ): Promise<T> {
    await this.room();
    if (this.lostBy) throw this.lostBy;
    const call = new Call(this, ++this.lastRef, verb, options);
    const frame = this.frameOf(call.ref, verb, fields);
    this.calls.set(call.ref, call);
    try {
      this.wire.input.write(frame);
      call.start();
      return await use(call);
    } catch (error) {
      throw error instanceof is.ShapeError ? this.broken(error) : error;
    } finally {
      call.stop();
      this.calls.delete(call.ref);
    }
  }

  private frameOf(ref: number, verb: string, fields: Fields): Buffer {
    let frame: Buffer;
    try {
      frame = encodeFrame(tuple(atom("call"), ref, atom(verb), fields));
    } catch (error) {
      throw new Invalid("invalid", verb, error instanceof Error ? error.message : String(error));
    }
    // What the other side would refuse would end the sandbox for every call.
    if (frame.length > MAX_FRAME) throw new TooLarge("e2big", verb, `a call is at most ${MAX_FRAME} bytes`);
    return frame;
  }

  /** Of a call that was cancelled and is not answered. */
  expire(): void {
    this.lose(new Lost("lost", "wire", `the sandbox did not answer within ${CANCEL_MS / 1000} s that a call was cancelled`));
  }

  static readonly cancelMs = CANCEL_MS;

  // ---- in ----------------------------------------------------------------------------------------

  private take(chunk: Buffer): void {
    if (this.lostBy) return;
    try {
      for (const frame of this.reader.push(chunk)) {
        this.dispatch(decodeFrame(frame));
        if (this.lostBy) return;
      }
    } catch (error) {
      this.broken(error);
    }
  }

  private broken(error: unknown): CaissonError {
    const why = error instanceof Error ? error.message : String(error);
    const who = this.info ? "the sandbox" : this.wire.program;
    return this.lose(new Lost("lost", "wire", `${who} broke the protocol: ${why}`));
  }

  private dispatch(term: Term): void {
    if (!(term instanceof Tuple)) throw new is.ShapeError("a message is not a tuple");
    const name = is.word(term.items[0], "a message's name");
    const [, ...parts] = term.items;
    if (name === "bye") this.onBye(parts);
    else if (name === "fact") this.onFact(parts);
    else this.onAnswer(name, parts);
  }

  private onBye(parts: readonly Term[]): void {
    const bye = farewell(parts[0], "bye");
    const text = bye.text ?? bye.reason ?? "the sandbox has ended";
    // What refused a start is told as it is; a sandbox that stood is lost.
    this.lose(this.info ? new Lost("lost", bye.stage, text) : errorOf(bye.code, bye.stage, text));
  }

  private onFact(parts: readonly Term[]): void {
    const map = parts[0];
    if (!(map instanceof Map)) throw new is.ShapeError("a fact is not a map");
    const event = (map as ReadonlyMap<string, Term>).get("event");
    if (event instanceof Atom) return; // of an agent without a monitor: no news
    const seen = violation(map, "fact");
    const ref = (map as ReadonlyMap<string, Term>).get("ref");
    if (typeof ref === "number") this.calls.get(ref)?.onViolation(seen);
    this.onViolation?.(seen);
  }

  private onAnswer(name: string, parts: readonly Term[]): void {
    const ref = is.integer(parts[0], `the number of ${name}`);
    if (ref === this.asked?.ref) return this.onAsked(name, parts);
    const call = this.calls.get(ref);
    if (!call && ref === 0 && name === "failed") throw new is.ShapeError(`it said: ${is.text(parts[2], "detail")}`);
    // A grant may cross the end of its call, and so may all the rest of one that was given up.
    if (!call && ref <= this.lastRef && ref > 0) return;
    if (!call) throw new is.ShapeError(`${name} came out of turn`);
    if (name === "data") call.onData(is.word(parts[1], "a stream"), is.bytes(parts[2], "data"));
    else if (name === "window") call.onWindow(is.integer(parts[1], "a window"));
    else if (name === "failed") call.onFailed(is.word(parts[1], "a reason"), is.text(parts[2], "a detail"));
    else if (name === "reply") call.onReply(parts[1] ?? null);
    else throw new is.ShapeError(`${name} is no message of this side`);
  }

  private onAsked(name: string, parts: readonly Term[]): void {
    if (name === "reply") this.asked?.done(parts[1] ?? null);
    else if (name === "failed") this.asked?.failed(refusalOf(is.word(parts[1], "a reason"), is.text(parts[2], "a detail")));
    else throw new is.ShapeError(`${name} came out of turn`);
  }

  private atEnd(): void {
    const said = this.wire.said();
    const why = said ? `: ${said}` : " ended without a word; it was killed, or its machine is out of memory";
    this.lose(new Lost("lost", this.info ? "wire" : "open", `${this.wire.program}${why}`));
    this.ended();
  }

  /** What is under way, and what comes, is told that the sandbox was closed. */
  closed(): void {
    this.lose(new Lost("lost", "close", "the sandbox was closed"));
  }

  /** The first reason counts. */
  lose(error: CaissonError): CaissonError {
    if (this.lostBy) return this.lostBy;
    this.lostBy = error;
    this.wire.destroy();
    this.asked?.failed(error);
    for (const call of this.calls.values()) call.onLost(error);
    return error;
  }
}

const versions = is.record({ caisson: is.text, protocol: is.integer });

/** Of `open` and `close`: the detail is a stage, a colon and a sentence. */
function refusalOf(code: string, detail: string): CaissonError {
  const [stage = "open", ...sentence] = detail.includes(": ") ? detail.split(": ") : ["open", detail];
  const isPolicys = stage === "policy" && (code === "eperm" || code === "eacces");
  return isPolicys ? new PolicyRefused(code, stage, sentence.join(": ")) : failureOf(code, stage, sentence.join(": "));
}
