import type { DesiredSet } from './desired.js';
import type { HandlerError } from './error.js';
import type { ObjectKey, ObjectRef } from './kubernetes.js';
import type { Request } from './request.js';

/** What becomes of failed requests in groups. */
export type BatchErrorStrategy = 'catch-error' | 'drop-error';

/** The type of a Kubernetes Event. */
export type EventType = 'normal' | 'warning';

/**
 * Requests, and what goes with them. Each method returns the output itself, so that they can follow one another.
 *
 * What a host refuses does nothing at all, and the run fails. In a chain it refuses `again`, `wait` and `nextPhase`; in a machine the
 * `desired` of a node with `once`, and of all but one of several nodes side by side; today, in chains and machines, `stop`, and outside of
 * a pipeline `removeFromPlan` and `read`. In a chain `data`, `output`, `details` and `progress` are left unread.
 */
export class Output {
  constructor(...requests: Request[]);
  /** What the host is to do. Names are used once in an output, and none equals a `groupBy`. */
  readonly requests: Request[];
  /** Adds requests. */
  request(...requests: Request[]): this;
  /** Requests are sent in order, and the first failure that nothing catches stops the rest. */
  serial(): this;
  /** Requests are sent side by side. The default. */
  parallel(): this;
  /** Each request is sent when those that it depends on are ready. */
  graph(): this;
  /** What becomes of failed requests that have a `groupBy` and no `onError`. By default they are caught. */
  batchErrorStrategy(strategy: BatchErrorStrategy): this;
  /** Hands a document to the next phase, which reads it with `Input.arg`. */
  pass(key: string, value: unknown): this;
  /** Merges this into the object's status by server-side apply, at the end of the run. In a batch, `of` names the object. */
  status(status: unknown, options?: { of?: ObjectRef }): this;
  /** A Kubernetes Event about the object, once the requests of this phase have gone through. In a batch, `of` names the object. */
  event(reason: string, message: string, options?: { type?: EventType; of?: ObjectRef }): this;
  /** The handler's own notes, which come back as `Input.notes` when it is entered again. */
  data(data: unknown): this;
  /** For later steps of the same flow, which read it with `Input.outputOf`. */
  output(output: unknown): this;
  /** What a person sees under the view `object-detail`. */
  details(details: unknown): this;
  /** How far the handler is: 0 to 100 percent. */
  progress(percent: number, message: string): this;
  /** In a machine: enter this handler again with the requests' results, at once or after so many milliseconds. */
  again(after?: number): this;
  /** In a machine: leave memory, and enter this handler again at the first of these. */
  wait(wake?: { after?: number; signals?: string[]; objects?: ObjectKey[] }): this;
  /** As throwing the error, but statuses, events, data and progress are kept. Requests and reads are dropped: the contract allows none here. */
  failed(error: HandlerError): this;
  /** In a pipeline: the handlers after this one are not called. */
  stop(): this;
  /** In a machine: go to this phase, whatever the transitions say. */
  nextPhase(phase: string): this;
  /**
   * Sets all that the owner is to have; the host deletes what is missing here. In a pipeline, its entries join the plan.
   *
   * Takes a `desiredSet`, or the set of `Input.plan`.
   */
  desired(desired: DesiredSet): this;
  /** In a pipeline: removes from the plan the requests and entries of these names. */
  removeFromPlan(...names: string[]): this;
  /** In a pipeline: adds requests that only read, and enters this handler again with their results, by `Input.answer`. */
  read(...requests: Request[]): this;
  /** As the host takes it: every field, for tests. */
  toWire(): any;
}
