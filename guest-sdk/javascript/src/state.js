import { Json, text } from './document.js';
import { HandlerError } from './error.js';
import { entries, Results } from './results.js';

/** In a machine: what the previous entry of the same handler left behind. */
export class State {
  #state;

  constructor(state) {
    const { done, failed, fatal, requestResults } = state;
    // The host sends `null` for an option that is absent.
    const [startTime, endTime, error, data] = [state.startTime, state.endTime, state.error, state.data].map((one) => one ?? undefined);
    this.#state = state;
    Object.assign(this, { startTime, endTime, done, failed, fatal });
    this.error = error && HandlerError.ofWire(error);
    this.dataJson = data === undefined ? undefined : new Json(data);
    this.results = new Results('the previous entry', requestResults);
  }

  /** The handler's own notes, or `undefined`. */
  get data() {
    return this.dataJson?.value;
  }

  /** For tests: as the host gives it to a handler that has left these notes, failed with this error, or asked for these results. */
  static of({ data, error, results = [], groups = {} } = {}) {
    return new State({
      startTime: undefined,
      endTime: undefined,
      done: false,
      failed: error !== undefined,
      fatal: error?.fatal ?? false,
      error: error?.toWire(),
      data: data === undefined ? undefined : text(data),
      requestResults: entries(results, groups),
    });
  }

  /** As the host gives it. */
  toWire() {
    return this.#state;
  }
}
