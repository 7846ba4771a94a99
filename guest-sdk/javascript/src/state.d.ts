import type { Json } from './document.js';
import type { HandlerError } from './error.js';
import type { Result } from './result.js';
import type { Results } from './results.js';

/** In a machine: what the previous entry of the same handler left behind. */
export class State<Notes = any> {
  private constructor();
  readonly startTime: string | undefined;
  readonly endTime: string | undefined;
  /** Whether its work is complete. */
  readonly done: boolean;
  readonly failed: boolean;
  /** Whether its failure was fatal. */
  readonly fatal: boolean;
  /** How it failed. */
  readonly error: HandlerError | undefined;
  /** The handler's own notes, or `undefined`. */
  readonly data: Notes | undefined;
  /** The handler's own notes as text, or `undefined`. */
  readonly dataJson: Json<Notes> | undefined;
  /** What became of its requests. */
  readonly results: Results;

  /** For tests: as the host gives it to a handler that has left these notes, failed with this error, or asked for these results. */
  static of<Notes>(state?: {
    data?: Notes;
    error?: HandlerError;
    results?: Result[];
    groups?: Record<string, Result[]>;
  }): State<Notes>;
}
