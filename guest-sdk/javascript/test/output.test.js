import assert from 'node:assert/strict';
import test from 'node:test';

import { desiredEntry, desiredSet, HandlerError, Output, request } from 'configurator-sdk';
import { Basic } from 'configurator-sdk/configstore';
import { POD } from 'configurator-sdk/kubernetes';

const ask = (name) => request(name, new Basic('k').get());

test('the defaults are left to the host', () => {
  const { requests, outcome, desired, removeFromPlan, reads } = new Output().toWire();
  assert.deepEqual(requests, { executeStrategy: undefined, resourceRequests: [], batchErrorStrategy: undefined });
  assert.deepEqual([outcome, desired], [{ tag: 'done' }, undefined]);
  assert.deepEqual([removeFromPlan, reads], [[], []]);
});

test('requests keep their order', () => {
  const output = new Output(ask('a')).request(ask('b'));
  assert.deepEqual(output.requests.map(({ requestName }) => requestName), ['a', 'b']);
  assert.equal(output.toWire().requests.resourceRequests, output.requests);
});

test('strategies', () => {
  const strategy = (output) => output.toWire().requests.executeStrategy;
  assert.deepEqual([new Output().serial(), new Output().parallel(), new Output().graph()].map(strategy), ['serial', 'parallel', 'graph']);
  assert.equal(new Output().batchErrorStrategy('drop-error').toWire().requests.batchErrorStrategy, 'drop-error');
});

test('statuses and Events name their object', () => {
  const of = { namespace: 'shop', name: 'web' };
  const { statuses, events } = new Output()
    .status({ ready: true })
    .status(1, { of })
    .event('Seen', 'it was seen')
    .event('Slow', 'it took long', { type: 'warning', of })
    .toWire();
  assert.deepEqual(statuses, [{ of: undefined, status: '{"ready":true}' }, { of, status: '1' }]);
  assert.deepEqual(events, [
    { of: undefined, eventType: 'normal', reason: 'Seen', message: 'it was seen' },
    { of, eventType: 'warning', reason: 'Slow', message: 'it took long' },
  ]);
});

test('what stays is written as JSON', () => {
  const { data, output, details, progress } = new Output().data({ n: 1 }).output([]).details(null).progress(250, 'half').toWire();
  assert.deepEqual([data, output, details], ['{"n":1}', '[]', 'null']);
  assert.deepEqual(progress, { percent: 100, message: 'half' });
});

test('outcomes', () => {
  const outcome = (output) => output.toWire().outcome;
  assert.deepEqual(outcome(new Output().again()), { tag: 'again', val: undefined });
  assert.deepEqual(outcome(new Output().again(1500.5)), { tag: 'again', val: 1500 });
  assert.deepEqual(outcome(new Output().stop()), { tag: 'stop' });
  const objects = [POD.key('shop', 'web')];
  const waiting = new Output().wait({ after: 60_000, signals: ['go'], objects });
  assert.deepEqual(outcome(waiting), { tag: 'wait', val: { after: 60_000, signals: ['go'], objects } });
  assert.equal(new Output().nextPhase('Running').toWire().next, 'Running');
});

test('a failed output keeps everything but its requests', () => {
  const { requests, statuses, outcome } = new Output(ask('a')).status(1).failed(new HandlerError('not yet')).toWire();
  assert.deepEqual([requests.resourceRequests, statuses.length], [[], 1]);
  assert.deepEqual(outcome, { tag: 'failed', val: new HandlerError('not yet').toWire() });
});

test('a set is all that an owner is to have', () => {
  const set = desiredSet([desiredEntry('a', { kind: 'Pod' })]);
  assert.equal(new Output().desired(set).toWire().desired, set);
});

test('a plan loses what is removed by name', () => {
  const { removeFromPlan } = new Output().removeFromPlan('a').removeFromPlan('b', 'c').toWire();
  assert.deepEqual(removeFromPlan, ['a', 'b', 'c']);
});

test('a handler that reads is entered again', () => {
  const { reads, outcome, requests } = new Output().read(ask('a')).read(ask('b')).toWire();
  assert.deepEqual(reads, [ask('a'), ask('b')]);
  assert.deepEqual([outcome, requests.resourceRequests], [{ tag: 'again', val: undefined }, []]);
});
