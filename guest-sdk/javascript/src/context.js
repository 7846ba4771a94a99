import { Json, text } from './document.js';

/** Facts about a call. Nothing here changes while it runs. */
export class Context {
  #cause;

  constructor({ configurator, phase, node, entry, attempt, cause, now, seed, runId }) {
    Object.assign(this, { configurator, phase, node, entry, attempt, now, seed, runId });
    this.#cause = cause;
  }

  /** Why the handler is called now: its `kind`, and the `signal` or the `changed` object that belongs to it. */
  get cause() {
    const { tag, val } = this.#cause;
    switch (tag) {
      case 'signal':
        return { kind: tag, signal: new Signal(val) };
      case 'changed':
        return { kind: tag, changed: val };
      default:
        return { kind: tag };
    }
  }

  /** As the host gives it to a test. */
  static wireOf({ parameters = {}, cause = 'entered', phase = 'root', ...facts } = {}) {
    return {
      configurator: 'test',
      phase,
      node: phase,
      entry: 1,
      attempt: 1,
      now: '2026-01-01T00:00:00.000Z',
      seed: 0,
      runId: 'run',
      ...facts,
      cause: wireCause(cause),
      parameters: text(parameters),
    };
  }
}

/** Something that a person or another program has told the run. */
export class Signal {
  constructor({ name, data }) {
    this.name = name;
    // The host sends `null` where there is none.
    this.dataJson = data == null ? undefined : new Json(data);
  }

  /** What was told with it, or `undefined`. */
  get data() {
    return this.dataJson?.value;
  }
}

function wireCause(cause) {
  if (typeof cause === 'string') {
    return { tag: cause };
  }
  if (cause.signal) {
    const { name, data } = cause.signal;
    return { tag: 'signal', val: { name, data: data === undefined ? undefined : text(data) } };
  }
  return { tag: 'changed', val: cause.changed };
}
