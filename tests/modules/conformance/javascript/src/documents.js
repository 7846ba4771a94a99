// Documents: read, made and handed on.

import { Output, request } from 'configurator-sdk';
import { CONFIG_MAP } from 'configurator-sdk/kubernetes';

export function object(input) {
  return new Output().pass('read', input.object).pass('untouched', input.objectJson);
}

/** Integers of at most 53 bits and fractions, which every language has. */
export function numbers(input) {
  const { integer, fraction, zero } = input.object.numbers;
  return new Output().data({
    doubled: integer * 2,
    halved: fraction / 2,
    negative: -integer,
    list: [zero, integer, fraction],
  });
}

export function unicode(input) {
  const { text } = input.object;
  const body = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'shop', name: 'texts' },
    data: {
      [text]: 'key',
      quoted: `"${text}"`,
      control: '\0\x1f\t\n\x7f',
      escapes: "\\ / < > & ' \u2028",
      astral: '𝄞 🙂 汉字',
    },
  };
  const points = Array.from(text, (character) => character.codePointAt(0));
  return new Output(request(`名-${text}`, CONFIG_MAP.apply('shop', 'texts', body))).pass('points', points);
}

/** As many levels as the parameter `levels` says: arrays in arrays, the innermost empty. */
export function deep(input) {
  const { levels = 1 } = input.parameters;
  let nested = [];
  for (let level = 1; level < levels; level += 1) {
    nested = [nested];
  }
  return new Output().pass('nested', nested);
}

/** As many items as the parameter `items` says. */
export function large(input) {
  const { items: length = 0 } = input.parameters;
  const item = (_, index) => ({ index, name: `item-${index}`, even: index % 2 === 0, tags: ['a', 'b', null] });
  return new Output().pass('items', Array.from({ length }, item));
}

/** Puts the argument `raw` into documents, as it stands. */
export function nestedJson(input) {
  const raw = input.argJson('raw');
  return new Output().pass('object', { a: raw }).pass('list', [1, [raw, raw], 'é']);
}
