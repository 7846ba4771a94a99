import { Json, text } from './document.js';
import { HandlerError } from './error.js';

/** What an HTTP endpoint answered. */
export class HttpResponse {
  constructor({ status, headers, body }) {
    Object.assign(this, { status, headers, body });
  }

  /** The value of the header of this name, in lower case. */
  header(name) {
    return this.headers.find(([known]) => known === name)?.[1];
  }

  /** The body as text. */
  text() {
    return new TextDecoder().decode(this.body);
  }

  /** What the body says. A fatal error where it is no JSON. */
  json() {
    try {
      return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.body));
    } catch {
      throw new HandlerError('the body of the answer is no JSON', { fatal: true });
    }
  }
}

/** What became of a request. */
export class Result {
  #result;
  #objects;

  constructor(result) {
    this.#result = result;
  }

  /** That of the request; tells the results of a group apart. */
  get name() {
    return this.#result.requestName;
  }

  /** The server that the request went to. */
  get sink() {
    return this.#result.requestSink;
  }

  /** Whether the phase has not waited for it. */
  get isDeclarative() {
    return this.#result.isDeclarative;
  }

  /** When the request was made. */
  get created() {
    return this.#result.createdTimestamp;
  }

  /** When it was answered; `undefined` for a declarative one that was not yet. */
  get finished() {
    // The host sends `null` for an option that is absent.
    return this.#result.finishedTimestamp ?? undefined;
  }

  /** Why it failed, where a failure is caught: `kind`, `message`, `retryable`, `status`. */
  get error() {
    const { error } = this.#result;
    return error ? { ...error, status: error.status ?? undefined } : undefined;
  }

  /** Itself. Throws the request's error, with its name; fatal unless a retry may help. */
  succeeded() {
    const { error } = this.#result;
    if (error) {
      throw new HandlerError(`the request \`${this.name}\` failed: ${error.message}`, { fatal: !error.retryable });
    }
    return this;
  }

  /** The first document of the answer. Throws as `succeeded` does; fatal where there is none: see `found`. */
  get object() {
    this.objectJson;
    return this.objects[0];
  }

  /** The first document of the answer as text. Throws as `object` does. */
  get objectJson() {
    const [first] = this.objectsJson;
    if (!first) {
      throw new HandlerError(`the result \`${this.name}\` has no object`, { fatal: true });
    }
    return first;
  }

  /** Every document of the answer: one for each item of a list. Throws as `succeeded` does. */
  get objects() {
    this.#objects ??= this.objectsJson.map((one) => one.value);
    return this.#objects;
  }

  /** Every document of the answer as text. Throws as `succeeded` does. */
  get objectsJson() {
    this.succeeded();
    return this.#result.queryObjects.map((one) => new Json(one));
  }

  /** The first document, or `undefined` where the server has no such object. Throws as `succeeded` does for any other failure. */
  get found() {
    return this.error?.kind === 'resource-not-found' ? undefined : this.objects[0];
  }

  /** What an HTTP endpoint answered. Throws as `succeeded` does; fatal when the request was none to an HTTP endpoint. */
  get response() {
    this.succeeded();
    const { httpResponse } = this.#result;
    if (!httpResponse) {
      throw new HandlerError(`the result \`${this.name}\` is none of an HTTP request`, { fatal: true });
    }
    return new HttpResponse(httpResponse);
  }

  /** For tests: as the host gives it for a request that succeeded. */
  static answered(name, objects = [], { sink = 'kubernetes' } = {}) {
    return new Result(wireResult(name, sink, { queryObjects: objects.map(text) }));
  }

  /** For tests: as the host gives it for an HTTP request. A body that is not bytes is written as JSON; headers are by name or, where one comes twice, pairs. */
  static responded(name, status, body, headers = {}) {
    const bytes = body instanceof Uint8Array ? body : new TextEncoder().encode(body === undefined ? '' : text(body));
    const httpResponse = { status, headers: Symbol.iterator in headers ? [...headers] : Object.entries(headers), body: bytes };
    return new Result(wireResult(name, 'http', { httpResponse }));
  }

  /** For tests: as the host gives it for a request that failed and was caught. */
  static failed(name, kind, message = '', { sink = 'kubernetes', status } = {}) {
    return new Result(wireResult(name, sink, { error: { kind, message, retryable: RETRYABLE.has(kind), status } }));
  }

  /** As the host gives it. */
  toWire() {
    return this.#result;
  }
}

function wireResult(requestName, requestSink, answer) {
  const now = '2026-01-01T00:00:00.000Z';
  return {
    requestName,
    requestSink,
    isDeclarative: false,
    queryObjects: [],
    createdTimestamp: now,
    finishedTimestamp: now,
    error: undefined,
    httpResponse: undefined,
    ...answer,
  };
}

/** The contract's table. */
const RETRYABLE = new Set([
  'resource-not-found',
  'resource-conflict',
  'resource-mutation',
  'api-server-unavailable',
  'configstore-unavailable',
  'secretstore-unavailable',
  'http-unavailable',
  'extension-unavailable',
]);
