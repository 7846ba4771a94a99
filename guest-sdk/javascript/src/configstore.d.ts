import type { Content, Partition } from './desired.js';
import type { Operation } from './request.js';

/** The resource's uid: a write then replaces the entry of an older one and what hangs on it, and a `get` finds only this one. */
export interface Uid {
  uid?: string;
}

/** The configuration of one cluster resource. */
export class Entry {
  private constructor();
  /** Of a Pod. */
  static pod(namespace: string, name: string, options?: Uid): Entry;
  /** Of a Node. */
  static node(name: string, options?: Uid): Entry;
  /** Of a Namespace. */
  static namespace(name: string, options?: Uid): Entry;
  /** Of a workload of this kind: `Deployment`, `StatefulSet` and the like. */
  static workload(namespace: string, kind: string, name: string, options?: Uid): Entry;
  /** Reads the entry: `{"key", "uid"?, "value"}`. */
  get(): Operation;
  /** Writes the entry unless it exists; one that exists is success. */
  create(value: string): Operation;
  /** Writes the entry. */
  update(value: string): Operation;
  /** Deletes the entry and what hangs on it. */
  delete(): Operation;
  /** Describes an entry of a set, with this value. */
  content(value: string, options?: Partition): Content;
}

/**
 * One key of the application configuration that belongs to a Pod and is deleted with its entry.
 *
 * The Pod's namespace is that of the object being handled, unless another is given.
 */
export class AppConf {
  constructor(pod: string, key: string, options?: { namespace?: string });
  /** Writes the key unless it exists; one that exists is success. */
  create(value: string): Operation;
  /** Writes the key. */
  update(value: string): Operation;
  /** Deletes the key. */
  delete(): Operation;
  /** Describes an entry of a set, with this value. */
  content(value: string, options?: Partition): Content;
}

/** A key by itself. */
export class Basic {
  constructor(key: string);
  /** Reads the key: `{"key", "value"}`. */
  get(): Operation;
  /** Writes the key. */
  put(value: string): Operation;
  /** Deletes the key. */
  delete(): Operation;
  /** Describes an entry of a set, with this value. */
  content(value: string, options?: Partition): Content;
}

/** A leaf under two levels of path. The host creates and removes the levels. */
export class TwoLayers {
  constructor(second: string, third: string);
  /** Reads the leaf: `{"key", "value"}`. */
  get(): Operation;
  /** Writes the leaf unless it exists; one that exists is success. */
  create(value: string): Operation;
  /** Writes the leaf. */
  update(value: string): Operation;
  /** Deletes the leaf. */
  delete(): Operation;
  /** Describes an entry of a set, with this value. */
  content(value: string, options?: Partition): Content;
}

/** All of these operations of the config store, or none. */
export function transaction(...operations: Operation[]): Operation;
