import type { Content } from './desired.js';
import type { Operation } from './request.js';

/** One object of a batch. The namespace is empty for a cluster-scoped one. */
export interface ObjectRef {
  namespace: string;
  name: string;
}

/** Any object of the cluster. */
export interface ObjectKey extends ObjectRef {
  group: string;
  version: string;
  plural: string;
}

/** `status`, `scale` and the like. */
export interface Subresource {
  subresource?: string;
}

/** It is a conflict unless the stored object has these. */
export interface Precondition {
  uid?: string;
  resourceVersion?: string;
}

/** How a patch is written. By default `merge`. */
export type PatchType = 'merge' | 'json-patch' | 'strategic';

/** What becomes of the objects that a deleted one owns. By default `background`. */
export type PropagationPolicy = 'background' | 'foreground' | 'orphan';

/**
 * A kind of object, and where the API serves it.
 *
 * An object is named by its namespace, which is empty for a cluster-scoped one, and its name.
 */
export class Resource {
  constructor(group: string, version: string, plural: string, kind: string);
  /** Empty for the core group. */
  readonly group: string;
  /** Such as `v1`. */
  readonly version: string;
  /** The name in the path, such as `configmaps`. */
  readonly plural: string;
  /** The name in the object, such as `ConfigMap`. */
  readonly kind: string;
  /** `group/version`, or only the version in the core group: what an object says in `apiVersion`. */
  readonly apiVersion: string;
  /** Names an object for `Output.wait`, to wait until it changes. */
  key(namespace: string, name: string): ObjectKey;
  /** Reads one object. With `cached` the host may answer from its watch cache, which can be a moment behind. */
  get(namespace: string, name: string, options?: Subresource & { cached?: boolean }): Operation;
  /** Reads the objects of a namespace, or of the whole cluster, whose labels and fields match these selectors. */
  list(namespace?: string, options?: Subresource & { labels?: string; fields?: string; cached?: boolean }): Operation;
  /** Changes parts of an object, by a merge patch unless `patchType` says otherwise. */
  patch(
    namespace: string,
    name: string,
    patch: unknown,
    options?: Subresource & Precondition & { patchType?: PatchType },
  ): Operation;
  /** Deletes an object. One that is absent is success. */
  delete(namespace: string, name: string, options?: Subresource & Precondition & { propagation?: PropagationPolicy }): Operation;
  /** Creates an object. One that exists is success, and is the result; with `mustNotExist` it is a conflict. */
  create(namespace: string, name: string, object: unknown, options?: Subresource & { mustNotExist?: boolean }): Operation;
  /** Replaces an object as a whole. A custom resource needs its version: in the object, or as `resourceVersion`. */
  replace(namespace: string, name: string, object: unknown, options?: Subresource & Precondition): Operation;
  /**
   * Server-side apply: the fields of `object` become ours, and those that we had applied before and that are missing now go.
   *
   * A field of another manager is a conflict, unless `force` takes it.
   */
  apply(namespace: string, name: string, object: unknown, options?: Subresource & Precondition & { force?: boolean }): Operation;
}

/** Describes an entry of a set: this object, with `apiVersion`, `kind` and `metadata.name`. */
export function content(object: unknown): Content;

export const POD: Resource;
export const NODE: Resource;
export const NAMESPACE: Resource;
export const CONFIG_MAP: Resource;
export const SECRET: Resource;
export const SERVICE: Resource;
export const DEPLOYMENT: Resource;
export const REPLICA_SET: Resource;
export const STATEFUL_SET: Resource;
export const DAEMON_SET: Resource;
export const JOB: Resource;
export const CRON_JOB: Resource;
