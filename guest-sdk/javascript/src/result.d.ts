import type { Json } from './document.js';

/** The server that a request goes to. */
export type RequestSink = 'kubernetes' | 'configstore' | 'secretstore' | 'http' | 'extension';

/** What went wrong, in the words that every sink shares. */
export type ErrorKind =
  | 'retry-exceed-limit'
  | 'resource-generic'
  | 'resource-not-found'
  | 'resource-conflict'
  | 'resource-mutation'
  | 'resource-permission'
  | 'unsupported-resource-operation'
  | 'api-server-unavailable'
  | 'configstore-unavailable'
  | 'secretstore-unavailable'
  | 'http-unavailable'
  | 'extension-unavailable'
  | 'outcome-unknown'
  | 'not-sent';

/** Why a request failed. */
export interface RequestError {
  kind: ErrorKind;
  message: string;
  /** Whether a retry may help. */
  retryable: boolean;
  /** The server's own status, where it has one: an HTTP status, or a gRPC code. */
  status?: number;
}

/** What an HTTP endpoint answered. */
export class HttpResponse {
  private constructor();
  /** The status, whatever it is. */
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: [string, string][];
  readonly body: Uint8Array;
  /** The value of the header of this name, in lower case. */
  header(name: string): string | undefined;
  /** The body as text. */
  text(): string;
  /** What the body says. A fatal error where it is no JSON. */
  json<T = any>(): T;
}

/** What became of a request. */
export class Result<T = any> {
  private constructor();
  /** That of the request; tells the results of a group apart. */
  readonly name: string;
  readonly sink: RequestSink;
  /** Whether the phase has not waited for it. */
  readonly isDeclarative: boolean;
  /** When the request was made. */
  readonly created: string;
  /** When it was answered; `undefined` for a declarative one that was not yet. */
  readonly finished: string | undefined;
  /** Why it failed, where a failure is caught. */
  readonly error: RequestError | undefined;
  /** Itself. Throws the request's error, with its name; fatal unless a retry may help. */
  succeeded(): this;
  /** The first document of the answer. Throws as `succeeded` does; fatal where there is none: see `found`. */
  readonly object: T;
  /** The first document of the answer as text. Throws as `object` does. */
  readonly objectJson: Json<T>;
  /** Every document of the answer: one for each item of a list. Throws as `succeeded` does. */
  readonly objects: T[];
  /** Every document of the answer as text. Throws as `succeeded` does. */
  readonly objectsJson: Json<T>[];
  /** The first document, or `undefined` where the server has no such object. Throws as `succeeded` does for any other failure. */
  readonly found: T | undefined;
  /** What an HTTP endpoint answered. Throws as `succeeded` does; fatal when the request was none to an HTTP endpoint. */
  readonly response: HttpResponse;

  /** For tests: as the host gives it for a request that succeeded. */
  static answered<T>(name: string, objects?: T[], options?: { sink?: RequestSink }): Result<T>;
  /** For tests: as the host gives it for an HTTP request. A body that is not bytes is written as JSON; headers are by name or, where one comes twice, pairs. */
  static responded(name: string, status: number, body?: unknown, headers?: Record<string, string> | Iterable<[string, string]>): Result;
  /** For tests: as the host gives it for a request that failed and was caught. */
  static failed(name: string, kind: ErrorKind, message?: string, options?: { sink?: RequestSink; status?: number }): Result;
}
