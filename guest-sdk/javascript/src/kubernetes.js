// Requests to the Kubernetes API, and objects as entries of a set. A `Resource` says which; each verb has only the options that it knows.
//
// An object is named by its namespace, which is empty for a cluster-scoped one, and its name. `subresource` is `status`, `scale` and the like.

import { text } from './document.js';

/**
 * A kind of object, and where the API serves it.
 *
 * - `group`: empty for the core group.
 * - `version`: such as `v1`.
 * - `plural`: the name in the path, such as `configmaps`.
 * - `kind`: the name in the object, such as `ConfigMap`.
 */
export class Resource {
  constructor(group, version, plural, kind) {
    Object.assign(this, { group, version, plural, kind });
    Object.freeze(this);
  }

  /** `group/version`, or only the version in the core group: what an object says in `apiVersion`. */
  get apiVersion() {
    return this.group ? `${this.group}/${this.version}` : this.version;
  }

  /** Names an object for `Output.wait`, to wait until it changes. */
  key(namespace, name) {
    const { group, version, plural } = this;
    return { group, version, plural, namespace, name };
  }

  /** Reads one object. With `cached` the host may answer from its watch cache, which can be a moment behind. */
  get(namespace, name, { cached, subresource } = {}) {
    return this.#operation('get', namespace, name, { cached: cached || undefined, subresource });
  }

  /** Reads the objects of a namespace, or of the whole cluster, whose labels and fields match these selectors. */
  list(namespace = '', { labels, fields, cached, subresource } = {}) {
    const selectors = { labelSelector: labels, fieldSelector: fields };
    return this.#operation('list', namespace, '', { ...selectors, cached: cached || undefined, subresource });
  }

  /**
   * Changes parts of an object, by a merge patch unless `patchType` says otherwise.
   *
   * It is a conflict unless the stored object has this `uid` and `resourceVersion`, where they are given.
   */
  patch(namespace, name, patch, { patchType, subresource, ...condition } = {}) {
    const options = { resourceBody: text(patch), patchType, subresource };
    return this.#operation('patch', namespace, name, { ...options, precondition: precondition(condition) });
  }

  /**
   * Deletes an object. One that is absent is success. `propagation`: what becomes of the objects that it owns.
   *
   * It is a conflict unless the stored object has this `uid` and `resourceVersion`, where they are given.
   */
  delete(namespace, name, { propagation, subresource, ...condition } = {}) {
    const options = { propagationPolicy: propagation, subresource };
    return this.#operation('delete', namespace, name, { ...options, precondition: precondition(condition) });
  }

  /** Creates an object. One that exists is success, and is the result; with `mustNotExist` it is a conflict. */
  create(namespace, name, object, { mustNotExist, subresource } = {}) {
    const options = { resourceBody: text(object), precheckExist: mustNotExist ? false : undefined, subresource };
    return this.#operation('create', namespace, name, options);
  }

  /**
   * Replaces an object as a whole. A custom resource needs its version: in the object, or as `resourceVersion`.
   *
   * It is a conflict unless the stored object has this `uid` and `resourceVersion`, where they are given.
   */
  replace(namespace, name, object, { subresource, ...condition } = {}) {
    const options = { resourceBody: text(object), subresource };
    return this.#operation('replace', namespace, name, { ...options, precondition: precondition(condition) });
  }

  /**
   * Server-side apply: the fields of `object` become ours, and those that we had applied before and that are missing now go.
   *
   * A field of another manager is a conflict, unless `force` takes it. So is a stored object that does not have this `uid` and
   * `resourceVersion`, where they are given.
   */
  apply(namespace, name, object, { force, subresource, ...condition } = {}) {
    const options = { resourceBody: text(object), force: force || undefined, subresource };
    return this.#operation('apply', namespace, name, { ...options, precondition: precondition(condition) });
  }

  #operation(verb, namespace, name, options) {
    const { group, version, plural, kind } = this;
    const val = {
      group,
      version,
      plural,
      kind,
      namespace,
      name,
      verb,
      subresource: options.subresource,
      fieldSelector: options.fieldSelector,
      labelSelector: options.labelSelector,
      resourceBody: options.resourceBody,
      patchType: options.patchType,
      precheckExist: options.precheckExist,
      force: options.force,
      cached: options.cached,
      propagationPolicy: options.propagationPolicy,
      precondition: options.precondition,
    };
    return { tag: 'kubernetes', val };
  }
}

/** Describes an entry of a set: this object, with `apiVersion`, `kind` and `metadata.name`. */
export function content(object) {
  return { tag: 'kubernetes', val: text(object) };
}

function precondition({ uid, resourceVersion }) {
  return uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
}

export const POD = new Resource('', 'v1', 'pods', 'Pod');
export const NODE = new Resource('', 'v1', 'nodes', 'Node');
export const NAMESPACE = new Resource('', 'v1', 'namespaces', 'Namespace');
export const CONFIG_MAP = new Resource('', 'v1', 'configmaps', 'ConfigMap');
export const SECRET = new Resource('', 'v1', 'secrets', 'Secret');
export const SERVICE = new Resource('', 'v1', 'services', 'Service');
export const DEPLOYMENT = new Resource('apps', 'v1', 'deployments', 'Deployment');
export const REPLICA_SET = new Resource('apps', 'v1', 'replicasets', 'ReplicaSet');
export const STATEFUL_SET = new Resource('apps', 'v1', 'statefulsets', 'StatefulSet');
export const DAEMON_SET = new Resource('apps', 'v1', 'daemonsets', 'DaemonSet');
export const JOB = new Resource('batch', 'v1', 'jobs', 'Job');
export const CRON_JOB = new Resource('batch', 'v1', 'cronjobs', 'CronJob');
