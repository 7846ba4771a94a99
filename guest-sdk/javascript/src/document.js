// JSON documents: what goes to the host and comes from it.

/** A document that is JSON text already. It is handed on as it is, byte for byte; any other string is a JSON string. */
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

  /** Within another document it is read and written again. */
  toJSON() {
    return this.exact;
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
  let json;
  try {
    json = JSON.stringify(document);
  } catch (error) {
    json = stringifyWithBigInts(document, error);
  }
  if (json === undefined) {
    throw new TypeError(`${typeof document} has no form in JSON`);
  }
  return json;
}

/** What no string of a document begins with: a private character, which marks digits. */
const MARK = '\uf8ff#';
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function exact(json) {
  const marked = json.replace(STRING_OR_NUMBER, (token) => {
    const isLarge = /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
    return isLarge ? `"${MARK}${token}"` : token;
  });
  const read = (_, value) => {
    const isMarked = typeof value === 'string' && value.startsWith(MARK);
    return isMarked ? BigInt(value.slice(MARK.length)) : value;
  };
  return JSON.parse(marked, read);
}

/** JSON.stringify throws at the first BigInt: rarely there, so only then each value is looked at. */
function stringifyWithBigInts(document, error) {
  let found = false;
  const marked = JSON.stringify(document, (_, value) => {
    if (typeof value !== 'bigint') {
      return value;
    }
    found = true;
    return MARK + value;
  });
  if (!found) {
    throw error;
  }
  return marked.replace(new RegExp(`"${MARK}(-?\\d+)"`, 'g'), '$1');
}
