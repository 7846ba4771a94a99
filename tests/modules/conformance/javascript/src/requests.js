// What requests can have whatever they ask for.

import { Output, request } from 'configurator-sdk';
import { Basic } from 'configurator-sdk/configstore';
import { get, post, send } from 'configurator-sdk/http';
import { CONFIG_MAP } from 'configurator-sdk/kubernetes';

import { parameter } from './parameter.js';

export function endpoints() {
  const headers = { 'content-type': 'application/json', 'x-team': 'red' };
  return new Output(
    request('get', get('https://hooks.example.com/a?b=c%20d')),
    request('post', post('https://hooks.example.com/', { headers, body: '{"text":"é"}' })),
    request('put', send('PUT', 'http://hooks.example.com:8080/blob', { body: new Uint8Array([0, 255, 10]) })),
  );
}

export function options() {
  const ask = new Basic('key').get();
  return new Output(
    request('plain', ask),
    request('declarative', new Basic('key').put('1'), { declarative: true }),
    request('grouped', ask, { groupBy: 'group' }),
    request('bootstrap', ask, { bootstrapDep: true }),
    request('of', ask, { of: { namespace: 'shop', name: 'web' } }),
    request('fail', ask, { onError: 'fail' }),
    request('catch', ask, { onError: 'catch-error' }),
    request('drop', ask, { onError: 'drop-error' }),
    request('once', ask, { once: true }),
    request('timeout', ask, { timeout: 1500 }),
    request('partition', ask, { partition: 'team-a' }),
  );
}

export function strategy(input) {
  const output = new Output(request('one', new Basic('key').get(), { groupBy: 'all' }));
  switch (parameter(input, 'strategy')) {
    case 'serial':
      return output.serial().batchErrorStrategy('drop-error');
    case 'parallel':
      return output.parallel().batchErrorStrategy('catch-error');
    default:
      return output;
  }
}

export function graph() {
  const apply = (name) =>
    CONFIG_MAP.apply('shop', name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name } });
  const isReady = { expression: "object.data.ready == 'yes'" };
  return new Output(
    request('a', apply('a'), { readyWhen: 'exists' }),
    request('b', apply('b'), { readyWhen: 'observed', dependsOn: ['a'] }),
    request('c', apply('c'), { readyWhen: isReady, dependsOn: ['a', 'b'] }),
    request('d', apply('d'), { readyWhen: 'healthy', dependsOn: ['c'] }),
  ).graph();
}
