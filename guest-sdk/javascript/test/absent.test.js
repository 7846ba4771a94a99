import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Context, Signal } from '../src/context.js';
import { HandlerError } from '../src/error.js';
import { Result } from '../src/result.js';
import { State } from '../src/state.js';

test('an option for which the host sends null is absent', () => {
  const error = HandlerError.ofWire({ message: 'm', fatal: false, retryAfter: null, code: null });
  assert.deepEqual([error.retryAfter, error.code], [undefined, undefined]);
  assert.equal(HandlerError.ofWire({ message: 'm', fatal: false, retryAfter: 0, code: null }).retryAfter, 0);

  const nothing = { startTime: null, endTime: null, done: false, failed: false, fatal: false, error: null, data: null };
  const state = new State({ ...nothing, requestResults: [] });
  assert.deepEqual(
    [state.startTime, state.endTime, state.error, state.dataJson, state.data],
    [undefined, undefined, undefined, undefined, undefined],
  );

  assert.equal(new Signal({ name: 'go', data: null }).data, undefined);
  const context = new Context({ cause: { tag: 'signal', val: { name: 'go', data: null } } });
  assert.equal(context.cause.signal.dataJson, undefined);

  const wire = { requestName: 'a', queryObjects: [], finishedTimestamp: null, error: null };
  const result = new Result(wire);
  assert.deepEqual([result.finished, result.error], [undefined, undefined]);
  const failed = new Result({ ...wire, error: { kind: 'not-sent', message: 'm', retryable: false, status: null } });
  assert.equal(failed.error.status, undefined);
});
