// Requests to HTTP endpoints.
//
// Any answer is a success, whatever its status; only a transport that fails is a fault. Redirects are not followed. Addresses that are not
// public are refused unless the operator of the host lists the name.

/**
 * A request of any method, in upper case. The URL holds no credentials. A body that is a string is sent in UTF-8.
 *
 * The header `host` is refused, since it follows from the URL; `content-length` must be that of the body. The host adds an
 * `Idempotency-Key` unless there is one: the same on every attempt of the request, also after a restart of the host. `headers` are values by
 * name, or pairs of both, in which a name may come again.
 */
export function send(method, url, { headers = {}, body } = {}) {
  const sent = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return { tag: 'http', val: { method, url, headers: pairs, body: sent } };
}

/** A GET. */
export function get(url, { headers } = {}) {
  return send('GET', url, { headers });
}

/** A POST. */
export function post(url, { headers, body } = {}) {
  return send('POST', url, { headers, body });
}
