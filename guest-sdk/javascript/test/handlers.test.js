import assert from 'node:assert/strict';
import test from 'node:test';

import { HandlerError, handlers, Input, Output } from 'configurator-sdk';
import { component, connect } from 'configurator-sdk/component';

const nothing = () => new Output();

const declared = handlers({
  root: { run: nothing, description: 'Does nothing.', parametersSchema: { type: 'object' }, capabilities: { secretstore: [] } },
  'write-all': { run: nothing, accepts: 'batch', view: 'check-list' },
  either: { run: nothing, accepts: 'either' },
  plain: nothing,
  broken: (input) => input.object.metadata.name,
  promising: async () => new Output(),
  refusing: () => {
    throw new HandlerError('no', { fatal: true });
  },
});

const lines = [];
connect((level, message, fields) => lines.push({ level, message, fields }));

test('an unknown name is answered with the known ones', () => {
  assert.throws(() => declared.call('rooot', Input.of()), {
    message: 'this module has no handler `rooot`; it has: root, write-all, either, plain, broken, promising, refusing',
    fatal: true,
  });
});

test('a handler gets only what it accepts', () => {
  const [one, batch] = [Input.of(), Input.of({ objects: [{}, {}] })];
  for (const [name, input] of [['root', one], ['plain', one], ['write-all', batch], ['either', one], ['either', batch]]) {
    assert.ok(declared.call(name, input) instanceof Output);
  }
  assert.throws(() => declared.call('root', batch), {
    message: 'handler `root` takes one object, and got a batch: remove `chain.batch` from the Configurator',
    fatal: true,
  });
  assert.throws(() => declared.call('write-all', one), {
    message: 'handler `write-all` takes a batch, and got one object: add `chain.batch` to the Configurator',
    fatal: true,
  });
});

test('a mistake is a failure that is retried and logged', () => {
  assert.throws(() => declared.call('broken', Input.of()), (error) => {
    assert.ok(error instanceof HandlerError);
    assert.equal(error.fatal, false);
    return error.message.startsWith('TypeError: ');
  });
  assert.equal(lines.at(-1).level, 'error');
  assert.match(lines.at(-1).message, /^TypeError: .*handlers\.test\.js/s);
});

test('a handler is not async', () => {
  assert.throws(() => declared.call('promising', Input.of()), {
    message: 'TypeError: handler `promising` returned Promise, not an Output',
    fatal: false,
  });
});

test('the description lists every handler', () => {
  const told = declared.describe().handlers.map(({ name, accepts, view }) => [name, accepts, view]);
  assert.deepEqual(told.slice(0, 4), [
    ['root', 'one', 'none'],
    ['write-all', 'batch', 'check-list'],
    ['either', 'either', 'none'],
    ['plain', 'one', 'none'],
  ]);
  assert.equal(declared.describe().handlers[0].parametersSchema, '{"type":"object"}');
  assert.equal(declared.describe().handlers[0].capabilities, '{"secretstore":[]}');
  assert.equal(declared.describe().handlers[1].capabilities, undefined);
});

test('a module has handlers, and each is a function with a name', () => {
  assert.throws(() => handlers({}), TypeError);
  assert.throws(() => handlers({ '': nothing }), TypeError);
  assert.throws(() => handlers({ root: {} }), TypeError);
});

test('the host gets records', () => {
  const { describe, handle } = component(declared);
  assert.equal(describe().handlers.length, 7);
  const wired = { resourceObject: { tag: 'one', val: { object: '{}', event: 'added' } }, context: { seed: 1 } };
  assert.deepEqual(handle('root', wired), new Output().toWire());
  assert.throws(() => handle('refusing', wired), (error) => {
    assert.deepEqual(error, { message: 'no', fatal: true, retryAfter: undefined, code: undefined });
    return true;
  });
});
