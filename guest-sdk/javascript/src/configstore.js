// Requests to the config store, and its keys as entries of a set.
//
// They name only the leaf: the host keeps the layers above it. Deleting what is absent is success.

/**
 * The configuration of one cluster resource.
 *
 * With the resource's `uid`, a write replaces the entry of an older uid and what hangs on it, and a `get` finds only this uid.
 */
export class Entry {
  #fields;

  constructor(configType, resourceName, { uid, namespace, workloadKind } = {}) {
    this.#fields = { configType, resourceName, resourceUid: uid, namespace, workloadKind };
  }

  /** Of a Pod. */
  static pod(namespace, name, { uid } = {}) {
    return new Entry('pod', name, { uid, namespace });
  }

  /** Of a Node. */
  static node(name, { uid } = {}) {
    return new Entry('node', name, { uid });
  }

  /** Of a Namespace. */
  static namespace(name, { uid } = {}) {
    return new Entry('namespace', name, { uid });
  }

  /** Of a workload of this kind: `Deployment`, `StatefulSet` and the like. */
  static workload(namespace, kind, name, { uid } = {}) {
    return new Entry('workload', name, { uid, namespace, workloadKind: kind });
  }

  /** Reads the entry: `{"key", "uid"?, "value"}`. */
  get() {
    return this.#operation('get');
  }

  /** Writes the entry unless it exists; one that exists is success. */
  create(value) {
    return this.#operation('create', value);
  }

  /** Writes the entry. */
  update(value) {
    return this.#operation('update', value);
  }

  /** Deletes the entry and what hangs on it. */
  delete() {
    return this.#operation('delete');
  }

  /** Describes an entry of a set, with this value. `partition`: as in a request. */
  content(value, { partition } = {}) {
    return contentOf({ tag: 'resource', val: this.#fields }, value, partition);
  }

  #operation(configVerb, value) {
    return { tag: 'config-resource', val: { ...this.#fields, configVerb, value } };
  }
}

/**
 * One key of the application configuration that belongs to a Pod and is deleted with its entry.
 *
 * The Pod's namespace is that of the object being handled, unless another is given.
 */
export class AppConf {
  #fields;

  constructor(pod, key, { namespace } = {}) {
    this.#fields = { podName: pod, namespace, key };
  }

  /** Writes the key unless it exists; one that exists is success. */
  create(value) {
    return this.#operation('create', value);
  }

  /** Writes the key. */
  update(value) {
    return this.#operation('update', value);
  }

  /** Deletes the key. */
  delete() {
    return this.#operation('delete');
  }

  /** Describes an entry of a set, with this value. `partition`: as in a request. */
  content(value, { partition } = {}) {
    return contentOf({ tag: 'app-conf', val: this.#fields }, value, partition);
  }

  #operation(verb, value) {
    return { tag: 'config-app-conf', val: { verb, ...this.#fields, value } };
  }
}

/** A key by itself. */
export class Basic {
  #key;

  constructor(key) {
    this.#key = key;
  }

  /** Reads the key: `{"key", "value"}`. */
  get() {
    return this.#operation('get');
  }

  /** Writes the key. */
  put(value) {
    return this.#operation('put', value);
  }

  /** Deletes the key. */
  delete() {
    return this.#operation('delete');
  }

  /** Describes an entry of a set, with this value. `partition`: as in a request. */
  content(value, { partition } = {}) {
    return contentOf({ tag: 'basic', val: this.#key }, value, partition);
  }

  #operation(verb, value) {
    return { tag: 'config-basic', val: { verb, key: this.#key, value } };
  }
}

/** A leaf under two levels of path. The host creates and removes the levels. */
export class TwoLayers {
  #fields;

  constructor(second, third) {
    this.#fields = { secondPath: second, thirdPath: third };
  }

  /** Reads the leaf: `{"key", "value"}`. */
  get() {
    return this.#operation('get');
  }

  /** Writes the leaf unless it exists; one that exists is success. */
  create(value) {
    return this.#operation('create', value);
  }

  /** Writes the leaf. */
  update(value) {
    return this.#operation('update', value);
  }

  /** Deletes the leaf. */
  delete() {
    return this.#operation('delete');
  }

  /** Describes an entry of a set, with this value. `partition`: as in a request. */
  content(value, { partition } = {}) {
    return contentOf({ tag: 'two-layers', val: this.#fields }, value, partition);
  }

  #operation(verb, value) {
    return { tag: 'config-two-layers', val: { verb, ...this.#fields, value } };
  }
}

function contentOf(key, value, partition) {
  return { tag: 'config', val: { key, value, partition } };
}

/** All of these operations of the config store, or none. */
export function transaction(...operations) {
  const parts = operations.map(({ tag, val }) => {
    const part = PARTS[tag];
    if (!part) {
      throw new TypeError(`a transaction cannot have an operation of the kind ${tag}`);
    }
    return { tag: part, val };
  });
  return { tag: 'config-transaction', val: { operations: parts } };
}

/** What an operation is called within a transaction. */
const PARTS = {
  'config-resource': 'resource',
  'config-app-conf': 'app-conf',
  'config-basic': 'basic',
  'config-two-layers': 'two-layers',
};
