import assert from 'node:assert/strict';
import test from 'node:test';

import { HandlerError, request } from 'configurator-sdk';
import { AppConf, Basic, Entry, transaction, TwoLayers } from 'configurator-sdk/configstore';
import { get, post, send } from 'configurator-sdk/http';
import { DEPLOYMENT, NODE, POD } from 'configurator-sdk/kubernetes';
import { Secret } from 'configurator-sdk/secretstore';

/** The fields of a record that are not left to the host. */
const said = (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));

test('what is not said is left to the host', () => {
  assert.deepEqual(said(request('a', new Basic('key').get())), {
    requestName: 'a',
    isDeclarative: false,
    bootstrapDep: false,
    dependsOn: [],
    once: false,
    operation: new Basic('key').get(),
  });
});

test('every option is said', () => {
  const full = request('a', new Basic('key').get(), {
    declarative: true,
    groupBy: 'all',
    bootstrapDep: true,
    of: { namespace: 'shop', name: 'web' },
    onError: 'catch-error',
    dependsOn: ['b', 'c'],
    readyWhen: { expression: 'object.ready' },
    once: true,
    timeout: 1500,
    partition: 'team-a',
  });
  assert.deepEqual(full, {
    requestName: 'a',
    isDeclarative: true,
    groupBy: 'all',
    bootstrapDep: true,
    of: { namespace: 'shop', name: 'web' },
    onError: 'catch-error',
    dependsOn: ['b', 'c'],
    readyWhen: { tag: 'expression', val: 'object.ready' },
    once: true,
    timeout: 1500,
    partition: 'team-a',
    operation: new Basic('key').get(),
  });
  assert.deepEqual(request('a', full.operation, { readyWhen: 'healthy' }).readyWhen, { tag: 'healthy' });
});

function check({ val }, verb, options = {}) {
  const { group, plural, kind, version, ...told } = said(val);
  assert.deepEqual(told, { namespace: 'shop', name: 'web', verb, ...options });
}

test('each verb has its options', () => {
  const at = ['shop', 'web'];
  check(POD.get(...at, { cached: true, subresource: 'log' }), 'get', { cached: true, subresource: 'log' });
  check(POD.list('', { labels: 'a=b', fields: 'spec.nodeName=n', cached: true }), 'list', {
    namespace: '',
    name: '',
    labelSelector: 'a=b',
    fieldSelector: 'spec.nodeName=n',
    cached: true,
  });
  check(DEPLOYMENT.patch(...at, [], { patchType: 'json-patch', subresource: 'scale', resourceVersion: '7' }), 'patch', {
    resourceBody: '[]',
    patchType: 'json-patch',
    subresource: 'scale',
    precondition: { uid: undefined, resourceVersion: '7' },
  });
  check(POD.create(...at, {}, { mustNotExist: true }), 'create', { resourceBody: '{}', precheckExist: false });
  check(POD.create(...at, {}, { subresource: 'eviction' }), 'create', { resourceBody: '{}', subresource: 'eviction' });
  check(POD.replace(...at, {}, { uid: 'u' }), 'replace', {
    resourceBody: '{}',
    precondition: { uid: 'u', resourceVersion: undefined },
  });
  check(POD.apply(...at, {}, { force: true }), 'apply', { resourceBody: '{}', force: true });
  check(POD.delete(...at, { propagation: 'orphan', uid: 'u' }), 'delete', {
    propagationPolicy: 'orphan',
    precondition: { uid: 'u', resourceVersion: undefined },
  });
});

test('what a verb does not say is left to the host', () => {
  check(POD.get('shop', 'web'), 'get');
  check(POD.create('shop', 'web', {}), 'create', { resourceBody: '{}' });
  check(POD.apply('shop', 'web', {}, { force: false }), 'apply', { resourceBody: '{}' });
});

test('the core group has no slash', () => {
  assert.deepEqual([POD.apiVersion, DEPLOYMENT.apiVersion], ['v1', 'apps/v1']);
});

test('a key names an object', () => {
  assert.deepEqual(NODE.key('', 'n'), { group: '', version: 'v1', plural: 'nodes', namespace: '', name: 'n' });
});

test('each type of entry has its place', () => {
  const entries = [
    Entry.pod('shop', 'web', { uid: 'u' }).get(),
    Entry.node('n').create('1'),
    Entry.namespace('shop').update('1'),
    Entry.workload('shop', 'Deployment', 'web').delete(),
  ];
  assert.deepEqual(entries.map(({ val }) => said(val)), [
    { configType: 'pod', configVerb: 'get', resourceName: 'web', resourceUid: 'u', namespace: 'shop' },
    { configType: 'node', configVerb: 'create', resourceName: 'n', value: '1' },
    { configType: 'namespace', configVerb: 'update', resourceName: 'shop', value: '1' },
    { configType: 'workload', configVerb: 'delete', resourceName: 'web', namespace: 'shop', workloadKind: 'Deployment' },
  ]);
});

test('keys and leaves are read and written', () => {
  const conf = new AppConf('web', 'tier', { namespace: 'shop' });
  assert.deepEqual(conf.update('gold').val, { verb: 'update', podName: 'web', namespace: 'shop', key: 'tier', value: 'gold' });
  const leaf = new TwoLayers('a', 'b');
  const key = new Basic('k');
  const all = [conf.create('1'), conf.delete(), key.get(), key.put('v'), key.delete(), leaf.get(), leaf.create('1'), leaf.update('2'), leaf.delete()];
  const verbs = ['create', 'delete', 'get', 'put', 'delete', 'get', 'create', 'update', 'delete'];
  assert.deepEqual(all.map(({ val }) => val.verb), verbs);
});

test('a transaction keeps the order and takes only the config store', () => {
  const operations = [new Basic('b').put('1'), Entry.node('n').delete(), new TwoLayers('a', 'b').delete(), new AppConf('web', 'a').delete()];
  const parts = transaction(...operations).val.operations;
  assert.deepEqual(parts.map(({ tag }) => tag), ['basic', 'resource', 'two-layers', 'app-conf']);
  assert.deepEqual(parts.map(({ val }) => val), operations.map(({ val }) => val));
  assert.throws(() => transaction(new Secret('db').get()), TypeError);
});

test('a secret has the value that the host or the handler makes', () => {
  const db = new Secret('db');
  assert.equal(db.create().val.value, undefined);
  assert.equal(db.createWith({ a: 1 }).val.value, '{"a":1}');
  assert.deepEqual([db.get().val.verb, db.delete().val.verb], ['get', 'delete']);
});

test('an update of a secret names the version that is stored', () => {
  const db = new Secret('db');
  assert.deepEqual(said(db.update(3).val), { secretName: 'db', verb: 'update', version: 3 });
  assert.deepEqual(said(db.updateWith(0, 'p').val), { secretName: 'db', verb: 'update', value: '"p"', version: 0 });
  assert.equal(db.get().val.version, undefined);
});

test('an HTTP request has method, headers and body', () => {
  const { val } = post('https://a/', { headers: { x: 'y' }, body: 'é' });
  assert.deepEqual(val, { method: 'POST', url: 'https://a/', headers: [['x', 'y']], body: new Uint8Array([195, 169]) });
  const cookies = [['cookie', 'a=1'], ['cookie', 'b=2']];
  assert.deepEqual(get('https://a/', { headers: cookies }).val.headers, cookies);
  assert.deepEqual(get('https://a/', { headers: new Map([['x', 'y']]) }).val.headers, [['x', 'y']]);
  assert.deepEqual(said(get('https://a/').val), { method: 'GET', url: 'https://a/', headers: [] });
  assert.deepEqual(send('PUT', 'https://a/', { body: new Uint8Array([0]) }).val.body, new Uint8Array([0]));
});

test('an error says when and what', () => {
  const error = new HandlerError('no quota', { retryAfter: 30_000, code: 'QUOTA' });
  assert.deepEqual(error.toWire(), { message: 'no quota', fatal: false, retryAfter: 30_000, code: 'QUOTA' });
  assert.deepEqual(HandlerError.ofWire(error.toWire()).toWire(), error.toWire());
});
