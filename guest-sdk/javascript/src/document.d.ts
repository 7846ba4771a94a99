/**
 * A document that is JSON text already. It is handed on as it is, byte for byte, by itself or within another document; any other string is a
 * JSON string.
 */
export class Json<T = any> {
  constructor(text: string);
  /** The text. */
  readonly text: string;
  /** What it says. Integers beyond 2^53 lose digits. */
  readonly value: T;
  /** What it says; integers beyond 2^53 are BigInts. Slower. */
  readonly exact: any;
  /** For a `JSON.stringify` of your own, which has no form for the text as it stands. */
  toJSON(): unknown;
  toString(): string;
}
