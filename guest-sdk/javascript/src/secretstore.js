// Requests to the secret store.

import { text } from './document.js';

/** A secret by its name. */
export class Secret {
  #name;

  constructor(name) {
    this.#name = name;
  }

  /**
   * Reads the secret: `{"name", "version", "value"}`.
   *
   * Keep the value out of log lines, Events and statuses; the host redacts it there as a second line of defence.
   */
  get() {
    return this.#operation('get');
  }

  /** Creates the secret with a value that the host generates; one that exists is success. */
  create() {
    return this.#operation('create');
  }

  /** Creates the secret with this value; one that exists is success and keeps its value. */
  createWith(value) {
    return this.#operation('create', text(value));
  }

  /** Deletes the secret. One that is absent is success. */
  delete() {
    return this.#operation('delete');
  }

  #operation(verb, value) {
    return { tag: 'secret', val: { secretName: this.#name, verb, value } };
  }
}
