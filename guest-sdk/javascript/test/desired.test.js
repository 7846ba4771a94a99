import assert from 'node:assert/strict';
import test from 'node:test';

import { desiredEntry, desiredSet, Json, request } from 'configurator-sdk';
import { AppConf, Basic, Entry, TwoLayers } from 'configurator-sdk/configstore';
import { content, POD } from 'configurator-sdk/kubernetes';
import { Secret } from 'configurator-sdk/secretstore';

/** The fields of a record that are not left to the host. */
const said = (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

test('what an entry does not say is left to the host', () => {
  assert.deepEqual(said(desiredEntry('a', { kind: 'Pod' })), {
    name: 'a',
    content: { tag: 'kubernetes', val: '{"kind":"Pod"}' },
    dependsOn: [],
    ignoredPaths: [],
  });
});

test('every option of an entry is said', () => {
  const options = {
    dependsOn: ['b', 'c'],
    failedWhen: 'object.failed',
    onExisting: 'create-only',
    onConflict: 'force',
    onImmutable: 'recreate',
    ignoredPaths: ['.spec.replicas'],
    onDelete: 'only-under-wipe-out',
  };
  assert.deepEqual(desiredEntry('a', new Secret('db').content(), { ...options, readyWhen: 'healthy', timeout: 1500.5 }), {
    name: 'a',
    content: { tag: 'secret', val: { secretName: 'db', value: undefined, partition: undefined } },
    ...options,
    readyWhen: { tag: 'healthy' },
    timeout: 1500,
  });
  const ready = desiredEntry('a', {}, { readyWhen: { expression: 'object.ready' } });
  assert.deepEqual(ready.readyWhen, { tag: 'expression', val: 'object.ready' });
});

test('an object is written once', () => {
  assert.deepEqual(content({ kind: 'Pod' }), { tag: 'kubernetes', val: '{"kind":"Pod"}' });
  assert.deepEqual(desiredEntry('a', new Json('{ }')).content, { tag: 'kubernetes', val: '{ }' });
  const made = content({ kind: 'Pod' });
  assert.equal(desiredEntry('a', made).content, made);
});

test('an object that has a tag is still an object', () => {
  const tagged = { apiVersion: 'example.com/v1', kind: 'Label', tag: 'secret', val: 1 };
  assert.deepEqual(desiredEntry('a', tagged).content, content(tagged));
});

test('each key of the config store has its place', () => {
  const contents = [
    Entry.workload('shop', 'Deployment', 'web', { uid: 'u' }).content('a'),
    Entry.node('n').content('b'),
    new AppConf('web', 'tier', { namespace: 'shop' }).content('c'),
    new Basic('region').content('d', { partition: 'team-a' }),
    new TwoLayers('teams', 'red').content('e'),
  ];
  assert.deepEqual(contents.map(({ tag }) => tag), Array(5).fill('config'));
  const node = { configType: 'node', resourceName: 'n', resourceUid: undefined, namespace: undefined, workloadKind: undefined };
  const workload = { configType: 'workload', resourceName: 'web', resourceUid: 'u', namespace: 'shop', workloadKind: 'Deployment' };
  assert.deepEqual(contents.map(({ val }) => val.key), [
    { tag: 'resource', val: workload },
    { tag: 'resource', val: node },
    { tag: 'app-conf', val: { podName: 'web', namespace: 'shop', key: 'tier' } },
    { tag: 'basic', val: 'region' },
    { tag: 'two-layers', val: { secondPath: 'teams', thirdPath: 'red' } },
  ]);
  assert.deepEqual(contents.map(({ val }) => val.value), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual(contents.map(({ val }) => val.partition), [undefined, undefined, undefined, 'team-a', undefined]);
});

test('a secret of a set has the value that the host or the handler makes', () => {
  const db = new Secret('db');
  assert.deepEqual(db.content({ partition: 'team-a' }).val, { secretName: 'db', value: undefined, partition: 'team-a' });
  assert.deepEqual(db.contentWith({ user: 'a' }).val, { secretName: 'db', value: '{"user":"a"}', partition: undefined });
});

test('what a set does not say is left to the host', () => {
  const nothing = { entries: [], allowEmpty: false, terminationPolicy: undefined, orders: undefined, preTerminate: [] };
  assert.deepEqual(desiredSet([]), nothing);
  assert.deepEqual(desiredSet([], { allowEmpty: true }), { ...nothing, allowEmpty: true });
});

test('a termination policy is named or read from the owner', () => {
  assert.deepEqual(desiredSet([], { terminationPolicy: 'wipe-out' }).terminationPolicy, { tag: 'policy', val: 'wipe-out' });
  assert.deepEqual(desiredSet([], { terminationPolicyAt: '.spec.policy' }).terminationPolicy, { tag: 'path', val: '.spec.policy' });
  assert.throws(() => desiredSet([], { terminationPolicy: 'delete', terminationPolicyAt: '.spec.policy' }), TypeError);
});

test('an order that is not given is empty', () => {
  const terminate = [['b'], ['a']];
  assert.deepEqual(desiredSet([], { terminate }).orders, { provision: [], update: [], terminate });
  const [provision, update] = [[['a'], ['b', 'c']], [['c']]];
  assert.deepEqual(desiredSet([], { provision, update }).orders, { provision, update, terminate: [] });
});

test('requests go before a deletion', () => {
  const pod = request('pod', POD.delete('shop', 'web'));
  assert.deepEqual(desiredSet([], { preTerminate: [pod] }).preTerminate, [pod]);
});
