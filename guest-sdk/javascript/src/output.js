import { text } from './document.js';
import { milliseconds } from './error.js';

/**
 * Requests, and what goes with them. Each method returns the output itself, so that they can follow one another.
 *
 * What a host refuses does nothing at all, and the run fails. In a chain it refuses `again`, `wait` and `nextPhase`, in a machine
 * `desired`; today, in chains and machines, `stop`, and outside of a pipeline `removeFromPlan` and `read`. In a chain `data`, `output`,
 * `details` and `progress` are left unread.
 */
export class Output {
  #wire;

  constructor(...requests) {
    this.#wire = {
      requests: { executeStrategy: undefined, resourceRequests: requests, batchErrorStrategy: undefined },
      passThroughArgs: [],
      outcome: { tag: 'done' },
      next: undefined,
      statuses: [],
      data: undefined,
      events: [],
      progress: undefined,
      output: undefined,
      details: undefined,
      desired: undefined,
      removeFromPlan: [],
      reads: [],
    };
  }

  /** What the host is to do. Names are used once in an output, and none equals a `groupBy`. */
  get requests() {
    return this.#wire.requests.resourceRequests;
  }

  /** Adds requests. */
  request(...requests) {
    this.requests.push(...requests);
    return this;
  }

  /** Requests are sent in order, and the first failure that nothing catches stops the rest. */
  serial() {
    return this.#execute('serial');
  }

  /** Requests are sent side by side. The default. */
  parallel() {
    return this.#execute('parallel');
  }

  /** Each request is sent when those that it depends on are ready. */
  graph() {
    return this.#execute('graph');
  }

  #execute(strategy) {
    this.#wire.requests.executeStrategy = strategy;
    return this;
  }

  /** What becomes of failed requests that have a `groupBy` and no `onError`: `catch-error`, the default, or `drop-error`. */
  batchErrorStrategy(strategy) {
    this.#wire.requests.batchErrorStrategy = strategy;
    return this;
  }

  /** Hands a document to the next phase, which reads it with `Input.arg`. */
  pass(key, value) {
    this.#wire.passThroughArgs.push([key, text(value)]);
    return this;
  }

  /** Merges this into the object's status by server-side apply, at the end of the run. In a batch, `of` names the object. */
  status(status, { of } = {}) {
    this.#wire.statuses.push({ of, status: text(status) });
    return this;
  }

  /** A Kubernetes Event about the object, once the requests of this phase have gone through. In a batch, `of` names the object. */
  event(reason, message, { type = 'normal', of } = {}) {
    this.#wire.events.push({ of, eventType: type, reason, message });
    return this;
  }

  /** The handler's own notes, which come back as `Input.notes` when it is entered again. */
  data(data) {
    this.#wire.data = text(data);
    return this;
  }

  /** For later steps of the same flow, which read it with `Input.outputOf`. */
  output(output) {
    this.#wire.output = text(output);
    return this;
  }

  /** What a person sees under the view `object-detail`. */
  details(details) {
    this.#wire.details = text(details);
    return this;
  }

  /** How far the handler is: 0 to 100 percent. */
  progress(percent, message) {
    this.#wire.progress = { percent: Math.max(0, Math.min(100, Math.trunc(percent))), message };
    return this;
  }

  /** In a machine: enter this handler again with the requests' results, at once or after so many milliseconds. */
  again(after) {
    this.#wire.outcome = { tag: 'again', val: milliseconds(after) };
    return this;
  }

  /** In a machine: leave memory, and enter this handler again at the first of these. */
  wait({ after, signals = [], objects = [] } = {}) {
    this.#wire.outcome = { tag: 'wait', val: { after: milliseconds(after), signals, objects } };
    return this;
  }

  /** As throwing the error, but statuses, events, data and progress are kept. Requests and reads are dropped: the contract allows none here. */
  failed(error) {
    this.requests.length = 0;
    this.#wire.reads.length = 0;
    this.#wire.outcome = { tag: 'failed', val: error.toWire() };
    return this;
  }

  /** In a pipeline: the handlers after this one are not called. */
  stop() {
    this.#wire.outcome = { tag: 'stop' };
    return this;
  }

  /** In a machine: go to this phase, whatever the transitions say. */
  nextPhase(phase) {
    this.#wire.next = phase;
    return this;
  }

  /**
   * Sets all that the owner is to have; the host deletes what is missing here. In a pipeline, its entries join the plan.
   *
   * Takes a `desiredSet`, or the set of `Input.plan`.
   */
  desired(desired) {
    this.#wire.desired = desired;
    return this;
  }

  /** In a pipeline: removes from the plan the requests and entries of these names. */
  removeFromPlan(...names) {
    this.#wire.removeFromPlan.push(...names);
    return this;
  }

  /** In a pipeline: adds requests that only read, and enters this handler again with their results, by `Input.answer`. */
  read(...requests) {
    this.#wire.reads.push(...requests);
    return this.again();
  }

  /** As the host takes it: every field, for tests. */
  toWire() {
    return this.#wire;
  }
}
