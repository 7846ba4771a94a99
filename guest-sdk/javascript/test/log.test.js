import assert from 'node:assert/strict';
import test from 'node:test';

import { log } from 'configurator-sdk';

test('a line shows its fields in order', (context) => {
  const written = context.mock.method(console, 'error', () => {});
  log.warn('no owner', { pod: 'web-1', level: 3 });
  log.line('info', 'plain');
  assert.deepEqual(written.mock.calls.map((call) => call.arguments), [['WARN no owner pod="web-1" level="3"'], ['INFO plain']]);
});
