import type { ObjectRef } from './kubernetes.js';

/** What a request asks for. Made by `kubernetes`, `configstore`, `secretstore` and `http`. */
export interface Operation {
  readonly tag:
    | 'kubernetes'
    | 'config-resource'
    | 'config-app-conf'
    | 'config-basic'
    | 'config-two-layers'
    | 'config-transaction'
    | 'secret'
    | 'http';
  readonly val: object;
}

/** What becomes of a failed request: the phase fails; the next handler gets its result with `error` set; or it gets none. */
export type OnError = 'fail' | 'catch-error' | 'drop-error';

/**
 * When others may go on: it exists; it exists and `status.observedGeneration`, where present, is its generation, which is the default; or a
 * CEL expression over `object` is true.
 */
export type Readiness = 'exists' | 'observed' | { expression: string };

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
  /** The requests of these names must be ready first. Only with `Output.graph`, which a chain refuses. */
  dependsOn?: string[];
  /** When those that depend on it may go on. Only with `Output.graph`. */
  readyWhen?: Readiness;
  /** Never sent a second time, even where the answer was lost. Refused in a chain. */
  once?: boolean;
  /** How many milliseconds one attempt may take. By default the sink's, which is 30 s. */
  timeout?: number;
  /**
   * The namespace whose partition of the config store or the secret store is meant. Only in a ClusterConfigurator with a rule that names the
   * namespace. By default the Configurator's own partition.
   */
  partition?: string;
}

/** A request, as the host takes it. */
export interface Request {
  readonly requestName: string;
  readonly isDeclarative: boolean;
  readonly groupBy?: string;
  readonly bootstrapDep: boolean;
  readonly of?: ObjectRef;
  readonly onError?: OnError;
  readonly dependsOn: string[];
  readonly readyWhen?: { tag: 'exists' | 'observed' } | { tag: 'expression'; val: string };
  readonly once: boolean;
  readonly timeout?: number;
  readonly partition?: string;
  readonly operation: Operation;
}

/** A request of this name, which its result has as well. No two requests of one output share a name. */
export function request(name: string, operation: Operation, options?: RequestOptions): Request;
