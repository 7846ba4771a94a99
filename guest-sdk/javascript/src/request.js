import { milliseconds } from './error.js';

/**
 * A request of this name, which its result has as well. No two requests of one output share a name.
 *
 * - `declarative`: the phase does not wait for it, and the host retries it by itself until a later one for the same target takes its place.
 *   Only for requests that change something.
 * - `groupBy`: the results of all requests with this key arrive together.
 * - `bootstrapDep`: the host is not ready until it has succeeded for every object that existed at start.
 * - `of`: in a batch, the object that it is for: a failure is charged to it alone.
 * - `onError`: what becomes of its failure. By default the phase fails; with `groupBy`, what the output says. An outage of a server is
 *   neither caught nor dropped: the run waits.
 * - `dependsOn`, `readyWhen`: only with `Output.graph`, and in `preTerminate` of a `desiredSet`.
 * - `once`: never sent a second time, even where the answer was lost. Refused in a chain.
 * - `timeout`: how many milliseconds one attempt may take. By default the sink's, which is 30 s.
 * - `partition`: the namespace whose partition of the config store or the secret store is meant. A Configurator may name its own namespace
 *   only, a ClusterConfigurator those that a rule of its capabilities names. By default the Configurator's own partition.
 */
export function request(name, operation, options = {}) {
  return {
    requestName: name,
    isDeclarative: options.declarative ?? false,
    groupBy: options.groupBy,
    bootstrapDep: options.bootstrapDep ?? false,
    of: options.of,
    onError: options.onError,
    dependsOn: options.dependsOn ?? [],
    readyWhen: readiness(options.readyWhen),
    once: options.once ?? false,
    timeout: milliseconds(options.timeout),
    partition: options.partition,
    operation,
  };
}

/** As the host takes it: `exists`, `observed`, `healthy`, or a CEL expression over `object`. */
export function readiness(when) {
  if (when === undefined) {
    return undefined;
  }
  return typeof when === 'string' ? { tag: when } : { tag: 'expression', val: when.expression };
}
