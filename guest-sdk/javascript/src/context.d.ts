import type { Json } from './document.js';
import type { ObjectKey } from './kubernetes.js';

/** Facts about a call. Nothing here changes while it runs. */
export class Context {
  private constructor();
  /** The name of the Configurator. */
  readonly configurator: string;
  readonly phase: string;
  /** The path of the handler's node in the phase's tree: `install/prepare/create-pods`. The phase's name where there is no tree. */
  readonly node: string;
  /** Counts from 1; `again` and the end of a `wait` add one, a retry does not. */
  readonly entry: number;
  /** Counts from 1 within an entry; a retry adds one. */
  readonly attempt: number;
  /** When this entry began, as `2026-01-31T08:00:00.000Z`: the same on a retry. */
  readonly now: string;
  /** Chance for the handler, an integer below 2^53: made of the run's id, node and entry, so the same on a retry. */
  readonly seed: number;
  /** Stable for one run of one object: usable in names that must not change on a retry. */
  readonly runId: string;
  /** Why the handler is called now. */
  readonly cause: Cause;
}

/**
 * Why a handler is called now:
 *
 * - `entered`: the first call in this phase.
 * - `retry`: a request of the previous call failed, or the call itself did.
 * - `again`: the previous call ended with `Output.again`.
 * - `timer`: the time named in `Output.wait` has come.
 * - `recovered`: the host restarted or another took over: `Input.last` is what was stored, without results.
 * - `signal`: it was told something.
 * - `changed`: an object named in `Output.wait` has changed.
 */
export type Cause =
  | { kind: 'entered' | 'retry' | 'again' | 'timer' | 'recovered'; signal?: undefined; changed?: undefined }
  | { kind: 'signal'; signal: Signal; changed?: undefined }
  | { kind: 'changed'; changed: ObjectKey; signal?: undefined };

/** Something that a person or another program has told the run. */
export class Signal {
  private constructor();
  readonly name: string;
  /** What was told with it, or `undefined`. */
  readonly data: any;
  /** What was told with it, as text, or `undefined`. */
  readonly dataJson: Json | undefined;
}
