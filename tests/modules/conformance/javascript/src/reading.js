// What a handler is given beside its object.

import { Output } from 'configurator-sdk';

import { parameter } from './parameter.js';

/** What a result says. */
function told(result) {
  const { name, isDeclarative, error, created, finished } = result;
  const response = result.sink === 'http' ? result.response : undefined;
  return {
    name,
    declarative: isDeclarative,
    objects: error ? [] : result.objects,
    error: error
      ? { kind: error.kind, message: error.message, retryable: error.retryable, status: error.status ?? null }
      : null,
    response: response
      ? { status: response.status, type: response.header('Content-Type') ?? null, body: response.text() }
      : null,
    created,
    finished: finished ?? null,
  };
}

/** Tells of each result, in order; of `wanted`, which must be there, whether it was found; of `absent`, that it is not there. */
export function results(input) {
  const all = input.results.all().flatMap(([, entry]) => entry);
  return new Output()
    .pass('all', all.map(told))
    .pass('found', input.result('wanted').found !== undefined)
    .pass('absent', input.resultOpt('absent') !== undefined);
}

function names(group) {
  return group.map(({ name }) => name);
}

export function groups(input) {
  const pods = input.group('pods');
  return new Output()
    .pass('pods', names(pods))
    .pass('failed', pods.filter(({ error }) => error).length)
    .pass('none', names(input.groupOpt('none')));
}

/** Reads the result or the group `asked`, or why the object is in the run, as the parameter `read` says. */
export function read(input) {
  const ways = {
    succeeded: () => input.result('asked').succeeded() !== undefined,
    object: () => input.result('asked').object,
    objects: () => input.result('asked').objects,
    json: () => input.result('asked').response.json(),
    group: () => names(input.group('asked')),
    answers: () => names(input.answers('asked')),
    event: () => input.event,
  };
  return new Output().pass('read', ways[parameter(input, 'read')]());
}

/** Reads an argument and hands it on beside another, untouched. */
export function args(input) {
  return new Output().pass('count', input.arg('count') + 1).pass('raw', input.argJson('raw'));
}

export function context(input) {
  const { configurator, phase, node, entry, attempt, now, seed, runId, cause } = input.context;
  return new Output().data({
    configurator,
    phase,
    node,
    entry,
    attempt,
    cause: cause.kind,
    detail: detail(cause),
    now,
    seed: String(seed),
    runId,
    parameters: input.parameters,
  });
}

function detail({ signal, changed }) {
  if (signal) {
    return { name: signal.name, data: signal.data ?? null };
  }
  return changed ? [changed.group, changed.version, changed.plural, changed.namespace, changed.name] : null;
}

/** Adds one to its notes; tells of its last failure, of the answer to `ask`, and of the step that the parameter `step` names. */
export function state(input) {
  const { last } = input;
  const count = input.notes?.count ?? 0;
  const answer = input.answer('ask')?.object ?? null;
  const step = input.outputOf(parameter(input, 'step'));
  return new Output()
    .data({ count: count + 1 })
    .output({ answer, step })
    .details(last ? { failed: last.failed, fatal: last.fatal, error: last.error?.message ?? null } : {})
    .progress(50, 'half')
    .again();
}
