import type { Operation } from './request.js';

/**
 * Values by name; or pairs of both, in which a name may come again.
 *
 * The header `host` is refused, since it follows from the URL; `content-length` must be that of the body. The host adds an
 * `Idempotency-Key` unless there is one: the same on every attempt of the request, also after a restart of the host.
 */
export interface Headers {
  headers?: Record<string, string> | Iterable<readonly [string, string]>;
}

/** A body that is a string is sent in UTF-8. */
export interface Body {
  body?: string | Uint8Array;
}

/** A request of any method, in upper case. The URL holds no credentials. */
export function send(method: string, url: string, options?: Headers & Body): Operation;
/** A GET. */
export function get(url: string, options?: Headers): Operation;
/** A POST. */
export function post(url: string, options?: Headers & Body): Operation;
