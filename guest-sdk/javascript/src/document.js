// JSON documents: what goes to the host and comes from it.

/** Whether `text` has met a `Json` within the document that it writes; undefined where nothing is being written. */
let met;

/**
 * A document that is JSON text already. It is handed on as it is, byte for byte, by itself or within another document; any other string is a
 * JSON string.
 */
export class Json {
  constructor(text) {
    this.text = String(text);
  }

  /** What it says. Integers beyond 2^53 lose digits. */
  get value() {
    return JSON.parse(this.text);
  }

  /** What it says; integers beyond 2^53 are BigInts. Slower. */
  get exact() {
    return exact(this.text);
  }

  /** For a `JSON.stringify` of your own, which has no form for the text as it stands. */
  toJSON() {
    if (met === undefined) {
      return this.exact;
    }
    met = true;
    return null;
  }

  toString() {
    return this.text;
  }
}

/** The document as JSON text. A BigInt is written as an integer; what JSON has no form for is a TypeError. */
export function text(document) {
  if (document instanceof Json) {
    return document.text;
  }
  const json = stringified(document) ?? written(document, '', []);
  if (json === undefined) {
    throw new TypeError(`${typeof document} has no form in JSON`);
  }
  return json;
}

/** By JSON.stringify, which is fast; undefined where something is in the document, or is not, that it does not write. */
function stringified(document) {
  const outer = met;
  met = false;
  try {
    const json = JSON.stringify(document);
    return met ? undefined : json;
  } catch {
    return undefined;
  } finally {
    met = outer;
  }
}

/** As JSON.stringify, but for what it has no form for: a Json as it stands, and a BigInt as an integer. */
function written(value, key, around) {
  const document = typeof value?.toJSON === 'function' && !(value instanceof Json) ? value.toJSON(key) : value;
  if (document instanceof Json) {
    return document.text;
  }
  if (typeof document === 'bigint' || document instanceof BigInt) {
    return String(document);
  }
  const isSimple = [Number, String, Boolean].some((type) => document instanceof type);
  if (typeof document !== 'object' || document === null || isSimple) {
    return JSON.stringify(document);
  }
  if (around.includes(document)) {
    throw new TypeError('the document holds itself');
  }
  const within = [...around, document];
  if (Array.isArray(document)) {
    return `[${Array.from(document, (one, index) => written(one, String(index), within) ?? 'null').join(',')}]`;
  }
  const members = Object.entries(document).map(([name, one]) => [name, written(one, name, within)]);
  const there = members.filter(([, one]) => one !== undefined);
  return `{${there.map(([name, one]) => `${JSON.stringify(name)}:${one}`).join(',')}}`;
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const PRIVATE = '\uf8ff';
const PRIVATE_RUN = /(?:\uf8ff|\\uf8ff)+/gi;

function exact(json) {
  // What no string of the document begins with: more of a private character than there are anywhere in it.
  const lengths = (json.match(PRIVATE_RUN) ?? []).map((run) => run.replace(/\\uf8ff/gi, PRIVATE).length);
  const mark = PRIVATE.repeat(1 + lengths.reduce((most, length) => Math.max(most, length), 0));
  const marked = json.replace(STRING_OR_NUMBER, (token) => {
    const isLarge = /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
    return isLarge ? `"${mark}${token}"` : token;
  });
  const read = (_, value) => {
    const isMarked = typeof value === 'string' && value.startsWith(mark);
    return isMarked ? BigInt(value.slice(mark.length)) : value;
  };
  return JSON.parse(marked, read);
}
