import type { Operation } from './request.js';

/** A secret by its name. */
export class Secret {
  constructor(name: string);
  /**
   * Reads the secret: `{"name", "version", "value"}`.
   *
   * Keep the value out of log lines, Events and statuses; the host redacts it there as a second line of defence.
   */
  get(): Operation;
  /** Creates the secret with a value that the host generates; one that exists is success. */
  create(): Operation;
  /** Creates the secret with this value; one that exists is success and keeps its value. */
  createWith(value: unknown): Operation;
  /** Deletes the secret. One that is absent is success. */
  delete(): Operation;
}
