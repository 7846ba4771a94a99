import type { ObjectRef } from './kubernetes.js';
import type { BatchErrorStrategy } from './output.js';

/** What a request asks for. Made by `kubernetes`, `configstore`, `secretstore`, `http` and `extension`. */
export interface Operation {
  readonly tag:
    | 'kubernetes'
    | 'config-resource'
    | 'config-app-conf'
    | 'config-basic'
    | 'config-two-layers'
    | 'config-transaction'
    | 'secret'
    | 'http'
    | 'extension';
  readonly val: object;
}

/** What becomes of a failed request: the phase fails; the next handler gets its result with `error` set; or it gets none. */
export type OnError = 'fail' | 'catch-error' | 'drop-error';

/**
 * The condition of a request or an entry, for what depends on it to go on:
 *
 * - `exists`: it exists.
 * - `observed`: it exists, and `status.observedGeneration`, where present, is its generation. The default of a request.
 * - `healthy`: it is observed, and healthy by the rules of its kind: a Deployment has its replicas, a Job is complete, a volume claim is bound.
 * - `expression`: a CEL expression over `object` is true.
 */
export type Readiness = 'exists' | 'observed' | 'healthy' | { expression: string };

/** A readiness, as the host sends and takes it. */
export type WireReadiness = { readonly tag: 'exists' | 'observed' | 'healthy' } | { readonly tag: 'expression'; readonly val: string };

/** What every request can have. */
export interface RequestOptions {
  /**
   * The phase does not wait for it, and the host retries it by itself until a later one for the same target takes its place. Only for
   * requests that change something.
   */
  declarative?: boolean;
  /** The results of all requests with this key arrive together. */
  groupBy?: string;
  /** The host is not ready until it has succeeded for every object that existed at start. */
  bootstrapDep?: boolean;
  /** In a batch, the object that it is for: a failure is charged to it alone. */
  of?: ObjectRef;
  /**
   * What becomes of its failure. By default the phase fails; with `groupBy`, what the output says. An outage of a server is neither caught
   * nor dropped: the run waits.
   */
  onError?: OnError;
  /** The requests of these names must be ready first. Only with `Output.graph`, and in `preTerminate` of a `desiredSet`. */
  dependsOn?: string[];
  /** When those that depend on it may go on. Only where `dependsOn` is allowed. */
  readyWhen?: Readiness;
  /** Never sent a second time, even where the answer was lost. Refused in a chain. */
  once?: boolean;
  /** How many milliseconds one attempt may take. By default the sink's, which is 30 s. */
  timeout?: number;
  /**
   * The namespace whose partition of the config store or the secret store is meant. A Configurator may name its own namespace only, a
   * ClusterConfigurator those that a rule of its capabilities names. By default the Configurator's own partition.
   */
  partition?: string;
}

/** A request, as the host sends and takes it. */
export interface Request {
  readonly requestName: string;
  readonly isDeclarative: boolean;
  readonly groupBy?: string;
  readonly bootstrapDep: boolean;
  readonly of?: ObjectRef;
  readonly onError?: OnError;
  readonly dependsOn: string[];
  readonly readyWhen?: WireReadiness;
  readonly once: boolean;
  readonly timeout?: number;
  readonly partition?: string;
  readonly operation: Operation;
}

/** Requests and their strategies, as the host sends them. */
export interface Requests {
  readonly executeStrategy?: 'serial' | 'parallel' | 'graph';
  readonly resourceRequests: Request[];
  readonly batchErrorStrategy?: BatchErrorStrategy;
}

/** A request of this name, which its result has as well. No two requests of one output share a name. */
export function request(name: string, operation: Operation, options?: RequestOptions): Request;
