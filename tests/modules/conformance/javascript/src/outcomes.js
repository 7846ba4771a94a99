// How a call ends, and what it says beside its requests.

import { HandlerError, log, Output, request } from 'configurator-sdk';
import { Basic } from 'configurator-sdk/configstore';
import { CONFIG_MAP, POD } from 'configurator-sdk/kubernetes';

import { parameter } from './parameter.js';

export function statuses() {
  return new Output()
    .status({ ready: true })
    .status({ count: 3 })
    .event('Configured', 'all is well')
    .event('Slow', 'it took long', { type: 'warning' });
}

export function error(input) {
  switch (parameter(input, 'error')) {
    case 'after':
      throw new HandlerError('no quota', { retryAfter: 30_000 });
    case 'code':
      throw new HandlerError('no quota', { code: 'QUOTA' });
    case 'fatal':
      throw new HandlerError('no such class', { fatal: true });
    default:
      throw new HandlerError('no quota');
  }
}

export function panic() {
  throw new Error('the sky is falling');
}

export function outcome(input) {
  const output = new Output();
  switch (parameter(input, 'outcome')) {
    case 'again':
      return output.again();
    case 'again-after':
      return output.again(5_000);
    case 'wait': {
      const objects = [POD.key('shop', 'web'), CONFIG_MAP.key('shop', 'a')];
      return output.wait({ after: 60_000, signals: ['go', 'stop'], objects });
    }
    case 'wait-forever':
      return output.wait();
    case 'failed':
      return output
        .status({ ready: false })
        .event('Failed', 'no quota', { type: 'warning' })
        .data([1])
        .progress(10, 'begun')
        .failed(new HandlerError('no quota', { code: 'QUOTA' }));
    case 'next':
      return output.nextPhase('Running');
    case 'stop':
      return output.request(request('one', new Basic('key').get())).stop();
    default:
      return output;
  }
}

export function lines() {
  log.trace('one');
  log.debug('two');
  log.info('three');
  log.warn('four');
  log.error('fünf');
  log.info('six', { b: 2, a: 1 });
  return new Output();
}

export function clock() {
  return new Output().pass('milliseconds', Date.now());
}

/** Three numbers that splitmix64 makes of the seed, as texts. */
export function chance(input) {
  const next = splitmix(input.context.seed);
  return new Output().pass('numbers', [next(), next(), next()].map(String));
}

export function random() {
  return new Output().pass('number', String(Math.random()));
}

function splitmix(seed) {
  const u64 = (number) => BigInt.asUintN(64, number);
  let state = BigInt(seed);
  return () => {
    state = u64(state + 0x9e37_79b9_7f4a_7c15n);
    let z = state;
    z = u64((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
    z = u64((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn);
    return z ^ (z >> 31n);
  };
}
