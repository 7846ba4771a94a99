// Requests to the secret store, and secrets as entries of a set.

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

  /**
   * Writes a value that the host generates in the place of this version; 0 stands for a secret that is absent.
   *
   * Another version is a conflict.
   */
  update(version) {
    return this.#operation('update', undefined, version);
  }

  /**
   * Writes this value in the place of this version; 0 stands for a secret that is absent.
   *
   * Another version is a conflict, unless it has the value already.
   */
  updateWith(version, value) {
    return this.#operation('update', text(value), version);
  }

  /** Deletes the secret. One that is absent is success. */
  delete() {
    return this.#operation('delete');
  }

  /** Describes an entry of a set, with a value that the host generates once. `partition`: as in a request. */
  content({ partition } = {}) {
    return { tag: 'secret', val: { secretName: this.#name, value: undefined, partition } };
  }

  /** Describes an entry of a set, with this value. `partition`: as in a request. */
  contentWith(value, { partition } = {}) {
    return { tag: 'secret', val: { secretName: this.#name, value: text(value), partition } };
  }

  #operation(verb, value, version) {
    return { tag: 'secret', val: { secretName: this.#name, verb, value, version } };
  }
}
