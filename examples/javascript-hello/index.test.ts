// The handler is called like any function.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Input, request } from 'configurator-sdk';
import { CONFIG_MAP } from 'configurator-sdk/kubernetes';

import { root } from './index.js';

test('a Namespace gets its ConfigMap', () => {
  const output = root(Input.of({ object: { metadata: { name: 'shop' } } }));
  const hello = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'shop', name: 'hello' },
    data: { greeting: 'hello, shop' },
  };
  assert.deepEqual(output.requests, [request('hello', CONFIG_MAP.apply('shop', 'hello', hello))]);
});

test('an object without a name is refused', () => {
  assert.throws(() => root(Input.of()), { message: 'the object has no name', fatal: true });
});
