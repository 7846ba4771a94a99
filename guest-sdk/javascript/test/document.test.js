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
  const part = new Json('{ "a" : [1E400, 0.1000000000000000000001, 12345678901234567890] }');
  assert.equal(text({ part, list: [part, undefined, () => 1, 'x'] }), `{"part":${part},"list":[${part},null,null,"x"]}`);
  assert.equal(text({ n: 1n, date: new Date(0), part }), `{"n":1,"date":"1970-01-01T00:00:00.000Z","part":${part}}`);
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

test('what is written with a Json or a BigInt in it is what JSON.stringify writes but for these', () => {
  const once = { toJSON: (key) => ({ key, toJSON: () => 'again' }) };
  const values = [undefined, Symbol('s'), () => 1, null, NaN, -0, 1e21, 'é"\n\ud834', Object('s'), Object(1), Object(false), [, 1], once];
  const all = { values, ...Object.fromEntries(values.map((value, index) => [`n${index}`, value])), '': {}, empty: [], map: new Map([[1, 2]]) };
  const written = JSON.stringify(all);
  assert.equal(text({ all, big: 1n, boxed: Object(2n) }), `{"all":${written},"big":1,"boxed":2}`);
  assert.equal(text([new Json('1E400'), all]), `[1E400,${written}]`);
});

test('strings and keys of any beginning stay what they are', () => {
  for (const sign of ['\uf8ff', '\uf8ff\uf8ff', '\uf8ff#', '\\uf8ff', '"', '-']) {
    const odd = { [`${sign}12`]: `${sign}12`, [`${sign}zz`]: [`${sign}zz`, `${sign}${'9'.repeat(20)}`], n: 12345678901234567890n };
    assert.deepEqual(new Json(text(odd)).exact, odd);
  }
  const escaped = '{"\\uF8FF12":"\\uf8ff\uf8ff12","n":12345678901234567890}';
  assert.deepEqual(new Json(escaped).exact, { '\uf8ff12': '\uf8ff\uf8ff12', n: 12345678901234567890n });
});

test('a Json reads itself for a JSON.stringify that is not of the SDK', () => {
  assert.equal(JSON.stringify({ part: new Json('{"a": [1]}') }), '{"part":{"a":[1]}}');
  const inner = { toJSON: () => text({ part: new Json('1') }) };
  assert.equal(text({ inner, part: new Json('[ ]') }), '{"inner":"{\\"part\\":1}","part":[ ]}');
});

test('what has no form in JSON is refused', () => {
  assert.throws(() => text(undefined), TypeError);
  assert.throws(() => text(() => 1), TypeError);
  const circle = {};
  circle.self = circle;
  assert.throws(() => text(circle), TypeError);
  assert.throws(() => text({ circle, n: 1n, part: new Json('1') }), TypeError);
  const twice = {};
  assert.equal(text([twice, twice, 1n]), '[{},{},1]');
});

test('documents may be a hundred levels deep', () => {
  const deep = '['.repeat(100) + ']'.repeat(100);
  assert.equal(text(new Json(deep).value), deep);
  assert.equal(text(new Json(deep).exact), deep);
});

test('half of a surrogate pair stays an escape', () => {
  assert.equal(text(JSON.parse('["\\ud834"]')), '["\\ud834"]');
});
