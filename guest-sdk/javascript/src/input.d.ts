import type { Cause, Context } from './context.js';
import type { DesiredSet } from './desired.js';
import type { Json } from './document.js';
import type { ObjectKey } from './kubernetes.js';
import type { Output } from './output.js';
import type { Requests } from './request.js';
import type { Result } from './result.js';
import type { Results } from './results.js';
import type { State } from './state.js';

/** Why an object is in the run. Several changes since the last run are one `modified`. */
export type WatchEvent = 'added' | 'modified' | 'deleted' | 'resync';

/** An object of the run. */
export class WatchedObject<T = any> {
  private constructor();
  readonly event: WatchEvent;
  readonly object: T;
  /** The object as text, as it was watched. */
  readonly objectJson: Json<T>;
}

/** The plan of a pipeline: requests and a set, as the host sends them. */
export interface Plan {
  readonly requests: Requests;
  readonly desired?: DesiredSet;
}

/** What an input for a test is made of. */
export interface InputFacts<T = any> {
  /** The object that the run is about. By default `{}`. */
  object?: T;
  /** The objects of a batch, in place of one object. */
  objects?: T[];
  /** Why each is in the run. By default `modified`. */
  event?: WatchEvent;
  parameters?: unknown;
  /** Results of the previous phase. */
  results?: Result[];
  /** Results of the previous phase that share a `groupBy`. */
  groups?: Record<string, Result[]>;
  /** What the previous phase passed on. */
  args?: Record<string, unknown>;
  /** The output of the previous phase, whose arguments are passed on. */
  argsOf?: Output;
  last?: State;
  /** What earlier steps have left, by their path. */
  outputs?: Record<string, unknown>;
  /** An output whose requests and set are the plan of a pipeline. */
  planOf?: Output;
  cause?: Exclude<Cause['kind'], 'signal' | 'changed'> | { signal: { name: string; data?: unknown } } | { changed: ObjectKey };
  configurator?: string;
  phase?: string;
  node?: string;
  entry?: number;
  attempt?: number;
  now?: string;
  seed?: number;
  runId?: string;
}

/**
 * What a handler decides on. The same input is to give the same output. `T` is the object's type.
 *
 * Documents are parsed when they are asked for; what ends in `Json` is their text, which can be handed on untouched.
 */
export class Input<T = any> {
  private constructor();
  /** Facts about this call. */
  readonly context: Context;
  /** Whether the run is of a batch. */
  readonly isBatch: boolean;
  /** All objects of the run: one, or those of the batch, which is never empty. */
  readonly objects: WatchedObject<T>[];
  /** The object. Of a batch, the first. */
  readonly object: T;
  /** The object as text, as it was watched. Of a batch, the first. */
  readonly objectJson: Json<T>;
  /** Why the object is in the run. Of a batch, the first. */
  readonly event: WatchEvent;
  /** The Configurator's `spec.parameters`, with those of the node laid over; an empty object where it has none. */
  readonly parameters: any;
  /** The parameters as text. */
  readonly parametersJson: Json;
  /** What became of the requests of the previous phase. Empty in the root phase. */
  readonly results: Results;
  /**
   * The result of the request of this name. A fatal error where there is none; the message lists what there is.
   *
   * A request that failed and was dropped has no result: use `resultOpt` for those.
   */
  result<R = any>(name: string): Result<R>;
  /** The result of the request of this name, or `undefined`. */
  resultOpt<R = any>(name: string): Result<R> | undefined;
  /** The results of all requests with this `groupBy`, in the order of the requests. A fatal error where there are none. */
  group<R = any>(key: string): Result<R>[];
  /** The results of all requests with this `groupBy`; empty where no request had it. */
  groupOpt<R = any>(key: string): Result<R>[];
  /** The keys of what the previous phase passed on. Empty in the root phase. */
  readonly args: string[];
  /** What the previous phase passed on under this key. A fatal error where it did not. */
  arg<A = any>(key: string): A;
  /** What the previous phase passed on under this key, as text, or `undefined`. */
  argJson<A = any>(key: string): Json<A> | undefined;
  /** In a machine: what the previous entry of this handler left behind, where it is entered again. */
  readonly last: State | undefined;
  /**
   * In a machine: the result of the request of this name that the entry before asked for.
   *
   * `undefined` on the first entry, where the request was not asked for, and where the host does not remember: then ask again.
   */
  answer<R = any>(name: string): Result<R> | undefined;
  /** In a machine: the results of all requests with this `groupBy` that the entry before asked for; empty where `answer` is `undefined`. */
  answers<R = any>(key: string): Result<R>[];
  /** In a machine: what this handler has noted with `Output.data`, or `undefined`. */
  readonly notes: any;
  /** In a machine: the paths of the steps that have left an output. */
  readonly outputs: string[];
  /**
   * In a machine: what the step at this path has left with `Output.output`. A fatal error where it has not.
   *
   * The path is that within the flow; outside a flow it begins with the phase.
   */
  outputOf<O = any>(path: string): O;
  /** In a machine: what the step at this path has left, as text, or `undefined`. */
  outputJson<O = any>(path: string): Json<O> | undefined;
  /**
   * In a pipeline: the plan of the handlers before this one, and of this one. Elsewhere `undefined`.
   *
   * Its requests and entries are as the host sends them, and can be put back into an output: whole, or as changed copies. The object of an
   * entry is text, `entry.content.val`, which `Json` reads and `kubernetes.content` makes.
   */
  readonly plan: Plan | undefined;

  /**
   * An input for a test. Without more it is the root phase of `{}`, first entry, first attempt, at the start of 2026.
   */
  static of<T = any>(facts?: InputFacts<T>): Input<T>;
}
