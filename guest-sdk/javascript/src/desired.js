// Sets: all that an owner is to have.
//
//   const password = desiredEntry('password', new Secret('shop-db').content(), { onDelete: 'retain' });
//   const database = desiredEntry('database', statefulSet, { dependsOn: ['password'] });
//   return new Output().desired(desiredSet([password, database]));

import { milliseconds } from './error.js';
import * as kubernetes from './kubernetes.js';
import { readiness } from './request.js';

/**
 * One member that the owner is to have. No two entries and requests of one output share a name.
 *
 * `content` is a Kubernetes object, or made by `content` of a `Secret` or of a key of the config store.
 *
 * - `dependsOn`: names of entries that must be ready first.
 * - `readyWhen`: when the entry is ready. By default `healthy` for a Kubernetes object, `exists` for all else.
 * - `failedWhen`: a CEL expression over `object`. The entry has failed while it is true.
 * - `timeout`: how many milliseconds the entry may take to be ready after it was written, or after it was ready last. By default there is no
 *   limit.
 * - `onExisting`: the policy for a member that exists and belongs to no set. By default `refuse`.
 * - `onConflict`: the policy for a field that another field manager has. By default `fail`.
 * - `onImmutable`: the policy for a change of an immutable field. By default `fail`.
 * - `ignoredPaths`: fields that the host leaves alone once the object exists: `.spec.replicas`.
 * - `onDelete`: the policy for the member when the owner is deleted. By default `with-owner`.
 */
export function desiredEntry(name, content, options = {}) {
  return {
    name,
    content: isContent(content) ? content : kubernetes.content(content),
    dependsOn: options.dependsOn ?? [],
    readyWhen: readiness(options.readyWhen),
    failedWhen: options.failedWhen,
    timeout: milliseconds(options.timeout),
    onExisting: options.onExisting,
    onConflict: options.onConflict,
    onImmutable: options.onImmutable,
    ignoredPaths: options.ignoredPaths ?? [],
    onDelete: options.onDelete,
  };
}

/**
 * All that an owner is to have, for `Output.desired`. The host deletes what an earlier set had and this one lacks.
 *
 * `entries` are in any order. Those of `Input.plan` can be put back.
 *
 * - `allowEmpty`: deletes all members if there are no entries. Without it, a set without entries is an error.
 * - `terminationPolicy`: the policy for the members when the owner is deleted. By default `delete`.
 * - `terminationPolicyAt`: the path of the owner that has the policy, such as `.spec.terminationPolicy`. The host reads it when the owner is
 *   deleted.
 * - `provision`, `update`: the orders of creation and of updates, where they differ from `dependsOn`: groups of names, each after the one
 *   before it. An order replaces the dependencies between the entries that it names.
 * - `terminate`: the order of deletion. The first group is deleted first.
 * - `preTerminate`: requests that are executed when the owner is being deleted, before any member is. Each waits for what it names in
 *   `dependsOn`.
 */
export function desiredSet(entries, options = {}) {
  const { allowEmpty = false, provision = [], update = [], terminate = [], preTerminate = [] } = options;
  const hasOrders = provision.length > 0 || update.length > 0 || terminate.length > 0;
  return {
    entries,
    allowEmpty,
    terminationPolicy: termination(options),
    orders: hasOrders ? { provision, update, terminate } : undefined,
    preTerminate,
  };
}

function termination({ terminationPolicy, terminationPolicyAt }) {
  if (terminationPolicy !== undefined && terminationPolicyAt !== undefined) {
    throw new TypeError('a set has either a termination policy or the path of one');
  }
  if (terminationPolicy !== undefined) {
    return { tag: 'policy', val: terminationPolicy };
  }
  return terminationPolicyAt === undefined ? undefined : { tag: 'path', val: terminationPolicyAt };
}

/** Tells the content of an entry from an object, which has an `apiVersion`. */
function isContent(value) {
  return CONTENTS.has(value?.tag) && value.apiVersion === undefined;
}

const CONTENTS = new Set(['kubernetes', 'config', 'secret']);
