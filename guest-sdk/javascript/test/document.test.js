import assert from 'node:assert/strict';
import test from 'node:test';

import { Json } from 'configurator-sdk';

import { text } from '../src/document.js';

test('what is read is written again', () => {
  for (const json of ['{"b":1,"a":[true,false,null,"é","\\"",0.5]}', '[]', '{}', '""', '"\u2028"']) {
    assert.equal(text(JSON.parse(json)), json);
  }
});

test('text that is JSON already is handed on untouched', () => {
  assert.equal(text(new Json('{ "a" : 1E400 }')), '{ "a" : 1E400 }');
  assert.equal(text('{}'), '"{}"');
  assert.equal(text({ part: new Json('{"a": [1]}') }), '{"part":{"a":[1]}}');
});

test('integers beyond 2^53 are BigInts where they are asked for, and are written with all their digits', () => {
  const json = '{"id":12345678901234567890,"n":-9007199254740993,"safe":9007199254740991,"text":"12345678901234567890","half":0.5}';
  const exact = new Json(json).exact;
  assert.deepEqual(exact, {
    id: 12345678901234567890n,
    n: -9007199254740993n,
    safe: 9007199254740991,
    text: '12345678901234567890',
    half: 0.5,
  });
  assert.equal(text(exact), json);
  assert.equal(text({ part: new Json(json) }), `{"part":${json}}`);
  assert.equal(new Json(json).value.safe, 9007199254740991);
});

test('what has no form in JSON is refused', () => {
  assert.throws(() => text(undefined), TypeError);
  assert.throws(() => text(() => 1), TypeError);
  const circle = {};
  circle.self = circle;
  assert.throws(() => text(circle), TypeError);
});

test('documents may be a hundred levels deep', () => {
  const deep = '['.repeat(100) + ']'.repeat(100);
  assert.equal(text(new Json(deep).value), deep);
  assert.equal(text(new Json(deep).exact), deep);
});

test('half of a surrogate pair stays an escape', () => {
  assert.equal(text(JSON.parse('["\\ud834"]')), '["\\ud834"]');
});
