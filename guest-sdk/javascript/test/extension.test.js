import assert from 'node:assert/strict';
import test from 'node:test';

import { request } from 'configurator-sdk';
import { Extension } from 'configurator-sdk/extension';

test('a request names extension, verb and target', () => {
  const dns = new Extension('dns');
  const at = { extension: 'dns', target: 'example.org/www' };
  const deletion = dns.request('delete', 'example.org/www');
  assert.deepEqual(deletion, { tag: 'extension', val: { ...at, verb: 'delete', body: undefined } });
  const upsert = dns.requestWith('upsert', 'example.org/www', { a: '192.0.2.1' });
  assert.deepEqual(upsert.val, { ...at, verb: 'upsert', body: '{"a":"192.0.2.1"}' });
  assert.equal(request('address', upsert).operation, upsert);
});

test('null is a body, and undefined is not', () => {
  assert.equal(new Extension('dns').requestWith('clear', 'example.org', null).val.body, 'null');
  assert.throws(() => new Extension('dns').requestWith('clear', 'example.org', undefined), TypeError);
});
