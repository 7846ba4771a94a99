// Requests to sinks that the embedder of the host adds.
//
//   const address = new Extension('dns').requestWith('upsert', 'example.org/www', { a: '192.0.2.1' });
//   return new Output(request('address', address));

import { text } from './document.js';

/** An extension by its name. A host without it refuses its requests with `unsupported-resource-operation`. */
export class Extension {
  #name;

  constructor(name) {
    this.#name = name;
  }

  /** Does what the verb of the extension says to this target. */
  request(verb, target) {
    return this.#operation(verb, target);
  }

  /** Does what the verb says to this target, with a body. */
  requestWith(verb, target, body) {
    return this.#operation(verb, target, text(body));
  }

  #operation(verb, target, body) {
    return { tag: 'extension', val: { extension: this.#name, verb, target, body } };
  }
}
