/**
 * What an answer has to look like. A shape checks a decoded term and gives a value of its type; keys
 * that it does not name are left out, so a newer caisson may say more.
 */

import { Atom, textOf, type Term } from "./term.js";

export type Shape<T> = (term: Term | undefined, where: string) => T;
export type Of<S> = S extends Shape<infer T> ? T : never;

export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

function refuse(where: string, wanted: string): never {
  throw new ShapeError(`${where} is not ${wanted}`);
}

/** A non-negative number. Beyond 2^53 it is rounded, as every number here is. */
export const integer: Shape<number> = (term, where) => {
  if ((typeof term !== "number" && typeof term !== "bigint") || term < 0) return refuse(where, "an integer");
  return Number(term);
};

export const boolean: Shape<boolean> = (term, where) =>
  typeof term === "boolean" ? term : refuse(where, "true or false");

/** A string; bytes that are no UTF-8 come back as they are when it is given as a path. */
export const text: Shape<string> = (term, where) =>
  Buffer.isBuffer(term) && !term.includes(0) ? textOf(term) : refuse(where, "a text");

export const bytes: Shape<Buffer> = (term, where) => (Buffer.isBuffer(term) ? term : refuse(where, "bytes"));

export const word: Shape<string> = (term, where) => (term instanceof Atom ? term.name : refuse(where, "an atom"));

/** An atom or a text: what ends a sandbox says its code either way. */
export const anyText: Shape<string> = (term, where) => (term instanceof Atom ? term.name : text(term, where));

export const nullable =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (term, where) =>
    term === null ? null : shape(term, where);

/** A key that may be absent; then it is null. */
export const optional =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (term, where) =>
    term === undefined ? null : shape(term, where);

/** A text that is empty where there is none; then it is null. */
export const filled =
  (shape: Shape<string>): Shape<string | null> =>
  (term, where) =>
    shape(term, where) || null;

/** A key that may be absent, with what it is then. */
export const fallback =
  <T>(shape: Shape<T>, otherwise: T): Shape<T> =>
  (term, where) =>
    term === undefined ? otherwise : shape(term, where);

export const listOf =
  <T>(shape: Shape<T>): Shape<T[]> =>
  (term, where) =>
    Array.isArray(term) ? (term as readonly Term[]).map((item) => shape(item, where)) : refuse(where, "a list");

/** Anything, as JSON would have it: texts for atoms and binaries. */
export const plain: Shape<unknown> = (term, where) => {
  if (term instanceof Map) {
    return Object.fromEntries([...(term as ReadonlyMap<string, Term>)].map(([key, value]) => [key, plain(value, where)]));
  }
  if (Array.isArray(term)) return (term as readonly Term[]).map((item) => plain(item, where));
  if (Buffer.isBuffer(term)) return textOf(term);
  if (term instanceof Atom) return term.name;
  return typeof term === "bigint" ? Number(term) : (term ?? null);
};

const wireNames = new WeakMap<Shape<unknown>, string>();

/** A key that has another name on the wire. */
export function named<T>(key: string, shape: Shape<T>): Shape<T> {
  const own: Shape<T> = (term, where) => shape(term, where);
  wireNames.set(own, key);
  return own;
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A map. Its keys on the wire are those of `shapes` in snake_case. */
export function record<S extends Record<string, Shape<unknown>>>(shapes: S): Shape<{ [K in keyof S]: Of<S[K]> }> {
  const keys = Object.entries(shapes).map(([name, shape]) => ({ name, shape, key: wireNames.get(shape) ?? snake(name) }));
  return (term, where) => {
    if (!(term instanceof Map)) return refuse(where, "a map");
    const map = term as ReadonlyMap<string, Term>;
    const entries = keys.map(({ name, shape, key }) => [name, shape(map.get(key), `${where}.${key}`)] as const);
    return Object.fromEntries(entries) as { [K in keyof S]: Of<S[K]> };
  };
}
