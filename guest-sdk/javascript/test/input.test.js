import assert from 'node:assert/strict';
import test from 'node:test';

import { desiredEntry, desiredSet, HandlerError, Input, Json, Output, request, Result, State } from 'configurator-sdk';
import { Basic } from 'configurator-sdk/configstore';
import { content, POD } from 'configurator-sdk/kubernetes';

function isFatal(message) {
  return (error) => {
    assert.ok(error instanceof HandlerError);
    assert.deepEqual([error.message, error.fatal], [message, true]);
    return true;
  };
}

test('an object is read and handed on untouched', () => {
  const input = Input.of({ object: { metadata: { name: 'web-1' } } });
  assert.equal(input.object.metadata.name, 'web-1');
  assert.equal(input.object, input.object);
  assert.equal(input.event, 'modified');
  assert.equal(input.isBatch, false);
  const output = new Output().pass('object', input.objectJson);
  assert.deepEqual(output.toWire().passThroughArgs, [['object', '{"metadata":{"name":"web-1"}}']]);
});

test('a batch is a list of objects', () => {
  const input = Input.of({ objects: [1, 2], event: 'deleted' });
  assert.equal(input.isBatch, true);
  assert.deepEqual(input.objects.map((one) => [one.object, one.event]), [[1, 'deleted'], [2, 'deleted']]);
  assert.equal(input.object, 1);
});

const phase = () =>
  Input.of({
    results: [Result.answered('node', [{ kind: 'Node' }])],
    groups: { pods: [Result.answered('pod-1', [{ n: 1 }])] },
    args: { layers: ['node', 'namespace'] },
  });

test('results and groups are found by name', () => {
  const input = phase();
  assert.equal(input.result('node').object.kind, 'Node');
  assert.deepEqual(input.group('pods').map((one) => one.name), ['pod-1']);
  assert.deepEqual(input.arg('layers'), ['node', 'namespace']);
  assert.equal(input.argJson('layers').text, '["node","namespace"]');
  assert.equal(input.resultOpt('pods'), undefined);
  assert.deepEqual(input.groupOpt('node'), []);
  assert.deepEqual(input.results.all().map(([key]) => key), ['node', 'pods']);
  assert.deepEqual(input.args, ['layers']);
});

test('what is missing is named with what is there', () => {
  const input = phase();
  assert.throws(() => input.result('nod'), isFatal('no result `nod`: the previous phase left node, pods'));
  assert.throws(() => input.arg('layer'), isFatal('no argument `layer`: the previous phase left layers'));
  assert.equal(input.argJson('layer'), undefined);
  assert.throws(() => Input.of().result('node'), isFatal('no result `node`: the previous phase left no results'));
});

test('a group is not a result', () => {
  const input = phase();
  const group = '`pods` is a group of results, not the result of one request: read it as a group';
  assert.throws(() => input.result('pods'), isFatal(group));
  const one = '`node` is the result of one request, not a group: read it as a result';
  assert.throws(() => input.group('node'), isFatal(one));
});

test('what one phase passes on the next one reads', () => {
  assert.equal(Input.of({ argsOf: new Output().pass('count', 3) }).arg('count'), 3);
});

test('a leaf finds what it asked for and noted', () => {
  const first = Input.of();
  assert.deepEqual([first.last, first.answer('pod'), first.notes], [undefined, undefined, undefined]);
  assert.deepEqual(first.answers('pods'), []);
  const pod = Result.answered('pod', [{ n: 1 }]);
  const error = new HandlerError('no quota', { code: 'QUOTA', retryAfter: 1500 });
  const last = State.of({ data: { tries: 2 }, error, results: [pod], groups: { pods: [pod] } });
  const input = Input.of({ last, outputs: { prepare: { size: 3 } } });
  assert.deepEqual(input.answer('pod').object, { n: 1 });
  assert.equal(input.answers('pods').length, 1);
  assert.deepEqual(input.notes, { tries: 2 });
  assert.equal(input.last.dataJson.text, '{"tries":2}');
  assert.deepEqual([input.last.failed, input.last.fatal], [true, false]);
  assert.deepEqual({ ...input.last.error }, { ...error });
  assert.deepEqual(input.outputs, ['prepare']);
  assert.deepEqual(input.outputOf('prepare'), { size: 3 });
  assert.throws(() => input.outputOf('prepar'), isFatal('no output `prepar`: earlier steps left prepare'));
});

test('there is a plan only in a pipeline', () => {
  assert.equal(Input.of().plan, undefined);
});

test('what is planned can be put back whole or changed', () => {
  const map = { kind: 'ConfigMap', metadata: { name: 'a' } };
  const key = desiredEntry('key', new Basic('region').content('north', { partition: 'team-a' }));
  const set = desiredSet([desiredEntry('map', map, { onDelete: 'retain', timeout: 30_000 }), key], { terminationPolicyAt: '.spec.policy' });
  const first = new Output(request('pods', POD.list('shop'), { groupBy: 'pods' })).graph().desired(set);
  const { plan } = Input.of({ planOf: first });
  assert.deepEqual(plan, { requests: first.toWire().requests, desired: set });

  const [member, ...rest] = plan.desired.entries;
  const object = new Json(member.content.val).value;
  object.metadata.labels = { planned: 'yes' };
  const changed = { ...member, content: content(object) };
  const { requests, desired } = new Output(...plan.requests.resourceRequests)
    .desired({ ...plan.desired, entries: [changed, ...rest] })
    .toWire();

  assert.deepEqual(requests.resourceRequests, first.requests);
  assert.equal(desired.entries[0].content.val, '{"kind":"ConfigMap","metadata":{"name":"a","labels":{"planned":"yes"}}}');
  assert.deepEqual([changed.onDelete, changed.timeout], ['retain', 30_000]);
  assert.deepEqual(desired.entries, [changed, key]);
  assert.deepEqual(desired.terminationPolicy, { tag: 'path', val: '.spec.policy' });
  // The input stays as it was.
  assert.equal(plan.desired.entries[0], member);
});

test('an option that is absent in a plan is undefined', () => {
  assert.equal(new Input({ plan: null }).plan, undefined);
  const body = new Uint8Array([0, 255]);
  const http = { tag: 'http', val: { method: 'PUT', url: 'https://a/', headers: [['x-a', 'b']], body } };
  const plan = {
    requests: { executeStrategy: 'serial', resourceRequests: [request('a', http)], batchErrorStrategy: 'catch-error' },
    desired: desiredSet([desiredEntry('b', { spec: null })]),
  };
  const sent = { ...plan, desired: { ...plan.desired, terminationPolicy: null, orders: null } };
  assert.deepEqual(new Input({ plan: sent }).plan, plan);
});

test('facts of the call are read', () => {
  const input = Input.of({ parameters: { a: [1] }, attempt: 2, phase: 'install', seed: 2 ** 53 - 1 });
  const { attempt, entry, phase, node, seed, cause } = input.context;
  assert.deepEqual([attempt, entry, phase, node, cause], [2, 1, 'install', 'install', { kind: 'entered' }]);
  assert.equal(seed, Number.MAX_SAFE_INTEGER);
  assert.deepEqual(input.parameters, { a: [1] });
  assert.equal(input.parametersJson.text, '{"a":[1]}');
});

test('a cause tells what belongs to it', () => {
  assert.equal(Input.of({ cause: 'retry' }).context.cause.kind, 'retry');
  const told = Input.of({ cause: { signal: { name: 'go', data: { by: 'me' } } } }).context.cause;
  assert.deepEqual([told.kind, told.signal.name, told.signal.data], ['signal', 'go', { by: 'me' }]);
  assert.equal(Input.of({ cause: { signal: { name: 'go' } } }).context.cause.signal.data, undefined);
  const key = { group: '', version: 'v1', plural: 'pods', namespace: 'shop', name: 'web' };
  assert.deepEqual(Input.of({ cause: { changed: key } }).context.cause, { kind: 'changed', changed: key });
});

test('absence is not a failure for found', () => {
  assert.equal(Result.failed('node', 'resource-not-found').found, undefined);
  assert.equal(Result.answered('node').found, undefined);
  assert.equal(Result.answered('node', [1]).found, 1);
});

test('a failure is fatal unless a retry may help', () => {
  const failed = (kind) => Result.failed('node', kind, 'it said no');
  assert.throws(() => failed('resource-permission').found, isFatal('the request `node` failed: it said no'));
  for (const kind of ['api-server-unavailable', 'extension-unavailable', 'resource-not-found']) {
    assert.throws(() => failed(kind).succeeded(), { fatal: false });
  }
});

test('a list may be empty but an object may not', () => {
  assert.deepEqual(Result.answered('pods').objects, []);
  assert.throws(() => Result.answered('pods').object, isFatal('the result `pods` has no object'));
});

test('an HTTP answer has status, headers and body', () => {
  const { response } = Result.responded('hook', 418, { tea: true }, { 'x-a': 'b' });
  assert.deepEqual([response.status, response.header('x-a'), response.header('x')], [418, 'b', undefined]);
  assert.deepEqual([response.json(), response.text()], [{ tea: true }, '{"tea":true}']);
  const cookies = [['set-cookie', 'a=1'], ['set-cookie', 'b=2']];
  assert.deepEqual(Result.responded('hook', 200, '', new Headers(cookies)).response.headers, cookies);
  assert.throws(() => Result.responded('hook', 200, new Uint8Array([255])).response.json(), { fatal: true });
  assert.throws(() => Result.answered('node').response, isFatal('the result `node` is none of an HTTP request'));
});
