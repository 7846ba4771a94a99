import assert from 'node:assert/strict';
import { test } from 'node:test';

import { complete, reseed, Utf8Decoder, Utf8Encoder } from '../src/engine.js';

const TEXTS = ['', 'plain', 'é', '日本語', '🦀 and 🐍', 'a\0b', '\ufeffmarked', '\uffff', '\u{10ffff}', 'lone \ud800 half', '\udc00\ud800'];

test('texts become the bytes that Node.js makes of them', () => {
  for (const text of TEXTS) {
    assert.deepEqual(new Utf8Encoder().encode(text), new TextEncoder().encode(text), text);
  }
});

test('bytes become the texts that Node.js makes of them', () => {
  const long = new TextEncoder().encode('é🦀'.repeat(5000));
  const wrong = [[0xff], [0xc3], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0xa6], [0xf4, 0x90, 0x80, 0x80], [0xf5], [0x80]];
  const mixed = wrong.map((bytes) => Uint8Array.from([0x61, ...bytes, 0x62]));
  for (const bytes of [...TEXTS.map((text) => new TextEncoder().encode(text)), long, ...wrong.map((one) => Uint8Array.from(one)), ...mixed]) {
    for (const options of [{}, { ignoreBOM: true }]) {
      assert.equal(new Utf8Decoder('utf-8', options).decode(bytes), new TextDecoder('utf-8', options).decode(bytes), String(bytes));
    }
  }
  for (const bytes of mixed) {
    assert.throws(() => new Utf8Decoder('UTF8', { fatal: true }).decode(bytes), TypeError);
  }
  assert.throws(() => new Utf8Decoder('latin1'), RangeError);
  assert.equal(new Utf8Decoder().decode(long.subarray(2, 6)), '🦀');
});

test('what is there is kept, and what is missing is added', () => {
  const engine = {};
  complete(engine);
  assert.deepEqual(Object.keys(engine), ['TextEncoder', 'TextDecoder', 'console']);
  const { console } = globalThis;
  complete();
  assert.equal(globalThis.console, console);
});

test('chance follows from the seed', () => {
  const original = Math.random;
  const numbers = (seed) => {
    reseed(seed);
    return Array.from({ length: 1000 }, () => Math.random());
  };
  try {
    assert.deepEqual(numbers(7), numbers(7));
    const several = [0, 1, 2 ** 32, 2 ** 53 - 1].map(numbers);
    assert.equal(new Set(several.map(String)).size, 4);
    for (const drawn of several) {
      assert.ok(drawn.every((one) => one >= 0 && one < 1));
      const mean = drawn.reduce((sum, one) => sum + one) / drawn.length;
      assert.ok(Math.abs(mean - 0.5) < 0.05, mean);
    }
  } finally {
    Math.random = original;
  }
});
