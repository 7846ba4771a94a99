// The module as the host calls it. `configurator build` makes it the component's entry.

import { complete, reseed } from './engine.js';
import { failure } from './error.js';
import { Input } from './input.js';
import { connect } from './log.js';

export { connect };

complete();

/** What the contract has modules export, for what `handlers` has declared. */
export function component(declared) {
  return {
    describe: () => declared.describe(),
    handle(name, wired) {
      reseed(wired.context.seed);
      try {
        return declared.call(name, new Input(wired)).toWire();
      } catch (error) {
        throw failure(error).toWire();
      }
    },
  };
}
