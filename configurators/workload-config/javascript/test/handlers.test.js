// The phases of a batch, called as the host calls them.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Input, request, Result } from 'configurator-sdk';
import { Entry } from 'configurator-sdk/configstore';
import { NAMESPACE } from 'configurator-sdk/kubernetes';

import handlers from '../src/index.js';
import { byText } from '../src/order.js';

function deployment(namespace, name, annotations = { 'config.configurator.dev/tier': 'gold', other: 'x' }) {
  const container = {
    name: 'server',
    image: 'registry.example.com/web:1',
    ports: [{ containerPort: 8080 }],
    env: [{ name: 'PORT', value: '8080' }, { name: 'TOKEN', value: 'hush' }],
  };
  return {
    metadata: { namespace, name, uid: `u-${name}`, annotations },
    spec: { replicas: 2, template: { spec: { serviceAccountName: name, containers: [container] } } },
  };
}

const entry = (namespace, name) => Entry.workload(namespace, 'Deployment', name, { uid: `u-${name}` });
const stored = (name, value) => Result.answered(`entry/shop/${name}`, [{ key: 'k', uid: `u-${name}`, value }]);
const call = (handler, objects, groups = {}) => handlers.call(handler, Input.of({ objects, groups })).requests;
const write = (names, groups) => call('write', names.map((name) => deployment('shop', name)), groups);

test('root asks for each Namespace once', () => {
  const batch = [deployment('shop', 'web'), deployment('shop', 'cart'), deployment('ads', 'web')];
  const namespace = (name) =>
    request(`namespace/${name}`, NAMESPACE.get('', name, { cached: true }), { groupBy: 'namespaces' });
  const get = (namespace, name) =>
    request(`entry/${namespace}/${name}`, entry(namespace, name).get(), { groupBy: 'entries', of: { namespace, name } });
  assert.deepEqual(call('root', batch), [
    namespace('ads'),
    namespace('shop'),
    get('shop', 'web'),
    get('shop', 'cart'),
    get('ads', 'web'),
  ]);
});

test('an object that is none of the API is refused', () => {
  assert.throws(() => call('root', [{ metadata: { name: 'web' } }]), { fatal: true });
});

test('write summarises each Deployment over its Namespace', () => {
  const annotations = { 'config.configurator.dev/tier': 'tin', 'config.configurator.dev/zone': 'a' };
  const groups = {
    namespaces: [Result.answered('namespace/shop', [{ metadata: { annotations } }])],
    entries: [Result.failed('entry/shop/web', 'resource-not-found')],
  };
  const value =
    '{"replicas":2,"serviceAccount":"web","containers":[{"name":"server","image":"registry.example.com/web:1",' +
    '"ports":[8080],"env":["PORT","TOKEN"]}],"config":{"tier":"gold","zone":"a"}}';
  const of = { namespace: 'shop', name: 'web' };
  assert.deepEqual(write(['web'], groups), [request('config/shop/web', entry('shop', 'web').update(value), { of })]);
});

test('keys of the configuration are in the order of texts', () => {
  const keys = ['b', '10', '9', '\u{1f642}', '\uffee', 'a'];
  const annotations = Object.fromEntries(keys.map((key) => [`config.configurator.dev/${key}`, '']));
  const [{ operation }] = call('write', [deployment('shop', 'web', annotations)]);
  assert.match(operation.val.value, /"config":\{"10":"","9":"","a":"","b":"","\uffee":"","\u{1f642}":""\}\}$/u);
  assert.deepEqual(['b', 'ab', 'a', ''].sort(byText), ['', 'a', 'ab', 'b']);
});

test('only entries that changed are written', () => {
  const first = write(['web', 'cart', 'ads']);
  assert.equal(first.length, 3);
  const value = (i) => first[i].operation.val.value;
  const entries = [stored('web', value(0)), stored('cart', '{}'), stored('ads', value(2))];
  const second = write(['web', 'cart', 'ads'], { entries });
  assert.deepEqual(second.map(({ of }) => of), [{ namespace: 'shop', name: 'cart' }]);
});

test('a Namespace that cannot be read is not taken for absent', () => {
  const failed = (kind) => ({ namespaces: [Result.failed('namespace/shop', kind, 'no answer')] });
  assert.throws(() => write(['web'], failed('api-server-unavailable')), { fatal: false });
  assert.equal(write(['web'], failed('resource-not-found')).length, 1);
});

test('an entry that cannot be read is written', () => {
  const entries = [Result.failed('entry/shop/web', 'configstore-unavailable', 'no answer')];
  assert.equal(write(['web'], { entries }).length, 1);
});

test('cleanup needs nothing but the identity', () => {
  const gone = { metadata: { namespace: 'shop', name: 'web', uid: 'u-web' } };
  const of = { namespace: 'shop', name: 'web' };
  assert.deepEqual(call('cleanup', [gone]), [request('config/shop/web', entry('shop', 'web').delete(), { of })]);
});
