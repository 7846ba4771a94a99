// What the engine of a module, QuickJS, lacks of what scripts and their packages expect: the console, texts as bytes; and chance that comes
// from the run. `configurator-sdk/component` sets it up.

import { log } from './log.js';

/** Adds what is missing. Elsewhere, as in Node.js, nothing is. */
export function complete(global = globalThis) {
  global.TextEncoder ??= Utf8Encoder;
  global.TextDecoder ??= Utf8Decoder;
  global.console ??= console();
}

/** Makes `Math.random` begin anew: the same numbers for the same seed. */
export function reseed(seed) {
  // Mulberry32 by Tommy Ettinger: public domain. Small, and good enough for what is no secret.
  let state = (seed ^ Math.imul(Math.floor(seed / 2 ** 32), 0x9e3779b1)) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return (z ^ (z >>> 14)) >>> 0;
  };
  Math.random = () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/** Lines of the host's log. */
function console() {
  const at = (level) => (...values) => log.line(level, values.map(shown).join(' '));
  return { debug: at('debug'), log: at('info'), info: at('info'), warn: at('warn'), error: at('error'), trace: at('trace') };
}

function shown(value) {
  if (value instanceof Error) {
    return `${value}\n${value.stack}`;
  }
  try {
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  } catch {
    return String(value);
  }
}

/** `TextEncoder`, as https://encoding.spec.whatwg.org has it. */
export class Utf8Encoder {
  get encoding() {
    return 'utf-8';
  }

  encode(text = '') {
    const string = String(text);
    // No unit of UTF-16 needs more than three bytes.
    const bytes = new Uint8Array(string.length * 3);
    let length = 0;
    for (let at = 0; at < string.length; at++) {
      let point = string.codePointAt(at);
      if (point >= 0xd800 && point <= 0xdfff) {
        point = 0xfffd;
      }
      if (point < 0x80) {
        bytes[length++] = point;
        continue;
      }
      if (point > 0xffff) {
        at++;
      }
      let rest = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      bytes[length++] = ((0xff00 >> (rest + 1)) & 0xff) | (point >> (6 * rest));
      while (rest > 0) {
        rest--;
        bytes[length++] = 0x80 | ((point >> (6 * rest)) & 0x3f);
      }
    }
    return bytes.slice(0, length);
  }
}

/** `TextDecoder` for UTF-8, as https://encoding.spec.whatwg.org has it, but for streams. */
export class Utf8Decoder {
  #fatal;
  #ignoreBOM;

  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*utf-?8\s*$/i.test(label)) {
      throw new RangeError(`the encoding ${label} is not there: only utf-8 is`);
    }
    this.#fatal = fatal;
    this.#ignoreBOM = ignoreBOM;
  }

  get encoding() {
    return 'utf-8';
  }

  decode(source = []) {
    const bytes = ArrayBuffer.isView(source)
      ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source);
    const points = [];
    const pieces = [];
    let at = !this.#ignoreBOM && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    while (at < bytes.length) {
      const { point, length } = character(bytes, at);
      if (point < 0 && this.#fatal) {
        throw new TypeError(`no UTF-8 at byte ${at}`);
      }
      points.push(point < 0 ? 0xfffd : point);
      at += length;
      if (points.length === 4096) {
        pieces.push(String.fromCodePoint(...points.splice(0)));
      }
    }
    pieces.push(String.fromCodePoint(...points));
    return pieces.join('');
  }
}

/** The character that begins here, with its length; below zero where there is none, with the length of what is to be replaced. */
function character(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) {
    return { point: first, length: 1 };
  }
  const rest = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let point = first & (0x3f >> rest);
  // What would be too long a form, a surrogate or beyond Unicode is seen at the second byte.
  let lowest = { 0xe0: 0xa0, 0xf0: 0x90 }[first] ?? 0x80;
  let highest = { 0xed: 0x9f, 0xf4: 0x8f }[first] ?? 0xbf;
  for (let n = 1; n <= rest; n++) {
    const byte = bytes[at + n];
    if (!(byte >= lowest && byte <= highest)) {
      return { point: -1, length: n };
    }
    point = (point << 6) | (byte & 0x3f);
    lowest = 0x80;
    highest = 0xbf;
  }
  return { point: rest === 0 ? -1 : point, length: rest + 1 };
}
