import type { Readiness, Request, WireReadiness } from './request.js';

/** The content of an entry. Made by `content` of `kubernetes`, of a `Secret` and of a key of the config store. */
export type Content =
  | { readonly tag: 'kubernetes'; readonly val: string }
  | { readonly tag: 'config'; readonly val: ConfigContent }
  | { readonly tag: 'secret'; readonly val: SecretContent };

/** The value of a key of the config store. */
export interface ConfigContent {
  readonly key: ConfigKey;
  readonly value: string;
  readonly partition?: string;
}

/** A leaf of the config store. The host keeps the layers above it. */
export type ConfigKey =
  | { readonly tag: 'resource'; readonly val: ConfigResourceKey }
  | { readonly tag: 'app-conf'; readonly val: ConfigAppConfKey }
  | { readonly tag: 'basic'; readonly val: string }
  | { readonly tag: 'two-layers'; readonly val: ConfigTwoLayersKey };

/** The configuration of one cluster resource. */
export interface ConfigResourceKey {
  readonly configType: 'pod' | 'node' | 'namespace' | 'workload';
  readonly resourceName: string;
  readonly resourceUid?: string;
  readonly namespace?: string;
  readonly workloadKind?: string;
}

/** One key of the application configuration that belongs to a Pod. */
export interface ConfigAppConfKey {
  readonly podName: string;
  readonly namespace?: string;
  readonly key: string;
}

/** A leaf under two levels of path. */
export interface ConfigTwoLayersKey {
  readonly secondPath: string;
  readonly thirdPath: string;
}

/** A secret of the secret store. Without a value, the host generates one once. */
export interface SecretContent {
  readonly secretName: string;
  /** JSON text. */
  readonly value?: string;
  readonly partition?: string;
}

/** The namespace whose partition of a store is meant, as in a request. */
export interface Partition {
  partition?: string;
}

/**
 * Policy for a member that exists and belongs to no set:
 *
 * - `refuse`: the entry fails.
 * - `adopt`: the set takes it over.
 * - `create-only`: the set creates the member if it is absent, and never changes it afterwards, whoever created it.
 */
export type OnExisting = 'refuse' | 'adopt' | 'create-only';

/**
 * Policy for a field that another field manager has, and that the entry sets to another value:
 *
 * - `fail`: the entry fails.
 * - `force`: the set takes the field over.
 */
export type OnConflict = 'fail' | 'force';

/**
 * Policy for a change that the server refuses because a field is immutable:
 *
 * - `fail`: the entry fails.
 * - `recreate`: the host deletes the member and creates it again.
 */
export type OnImmutable = 'fail' | 'recreate';

/**
 * Policy for a member when the owner is deleted, or a later set has no such entry:
 *
 * - `with-owner`: the member is deleted.
 * - `retain`: the member stays, and belongs to no set any more.
 * - `only-under-wipe-out`: the member is deleted with the policy `wipe-out`, and stays otherwise.
 */
export type OnDelete = 'with-owner' | 'retain' | 'only-under-wipe-out';

/**
 * Policy for the members when the owner is deleted:
 *
 * - `do-not-terminate`: owner and members stay.
 * - `keep-volumes`: all but volumes, volume claims and volume snapshots is deleted.
 * - `delete`: all is deleted that `onDelete` does not keep.
 * - `wipe-out`: as `delete`, with what is kept under every other policy.
 */
export type TerminationPolicy = 'do-not-terminate' | 'keep-volumes' | 'delete' | 'wipe-out';

/** Options of an entry. */
export interface DesiredEntryOptions {
  /** The entries of these names must be ready first. */
  dependsOn?: string[];
  /** When the entry is ready. By default `healthy` for a Kubernetes object, `exists` for all else. */
  readyWhen?: Readiness;
  /** A CEL expression over `object`. The entry has failed while it is true. */
  failedWhen?: string;
  /** How many milliseconds the entry may take to be ready after it was written, or after it was ready last. By default there is no limit. */
  timeout?: number;
  /** Policy for a member that exists and belongs to no set. By default `refuse`. */
  onExisting?: OnExisting;
  /** Policy for a field that another field manager has. By default `fail`. */
  onConflict?: OnConflict;
  /** Policy for a change of an immutable field. By default `fail`. */
  onImmutable?: OnImmutable;
  /** Fields that the host leaves alone once the object exists: `.spec.replicas`. */
  ignoredPaths?: string[];
  /** Policy for the member when the owner is deleted. By default `with-owner`. */
  onDelete?: OnDelete;
}

/** An entry, as the host sends and takes it. */
export interface DesiredEntry {
  readonly name: string;
  readonly content: Content;
  readonly dependsOn: string[];
  readonly readyWhen?: WireReadiness;
  readonly failedWhen?: string;
  readonly timeout?: number;
  readonly onExisting?: OnExisting;
  readonly onConflict?: OnConflict;
  readonly onImmutable?: OnImmutable;
  readonly ignoredPaths: string[];
  readonly onDelete?: OnDelete;
}

/** Options of a set. */
export interface DesiredSetOptions {
  /** Deletes all members if there are no entries. Without it, a set without entries is an error. */
  allowEmpty?: boolean;
  /** Policy for the members when the owner is deleted. By default `delete`. */
  terminationPolicy?: TerminationPolicy;
  /**
   * The path of the owner that has the policy, such as `.spec.terminationPolicy`, in place of the policy itself. The host reads it when the
   * owner is deleted.
   */
  terminationPolicyAt?: string;
  /**
   * The order of creation, where it differs from `dependsOn`: groups of names, each after the one before it. An order replaces the
   * dependencies between the entries that it names.
   */
  provision?: string[][];
  /** The order of updates. */
  update?: string[][];
  /** The order of deletion. The first group is deleted first. */
  terminate?: string[][];
  /**
   * Requests that are executed when the owner is being deleted, before any member is. Each waits for what it names in `dependsOn`.
   */
  preTerminate?: Request[];
}

/** A set, as the host sends and takes it. */
export interface DesiredSet {
  readonly entries: DesiredEntry[];
  readonly allowEmpty: boolean;
  readonly terminationPolicy?: { tag: 'policy'; val: TerminationPolicy } | { tag: 'path'; val: string };
  readonly orders?: { provision: string[][]; update: string[][]; terminate: string[][] };
  readonly preTerminate: Request[];
}

/**
 * One member that the owner is to have. No two entries and requests of one output share a name.
 *
 * `content` is a Kubernetes object, or made by `content` of a `Secret` or of a key of the config store.
 */
export function desiredEntry(name: string, content: unknown, options?: DesiredEntryOptions): DesiredEntry;

/**
 * All that an owner is to have, for `Output.desired`. The host deletes what an earlier set had and this one lacks.
 *
 * `entries` are in any order. Those of `Input.plan` can be put back.
 */
export function desiredSet(entries: DesiredEntry[], options?: DesiredSetOptions): DesiredSet;
