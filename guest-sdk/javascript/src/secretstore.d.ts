import type { Content, Partition } from './desired.js';
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
  /**
   * Writes a value that the host generates in the place of this version; 0 stands for a secret that is absent.
   *
   * Another version is a conflict.
   */
  update(version: number): Operation;
  /**
   * Writes this value in the place of this version; 0 stands for a secret that is absent.
   *
   * Another version is a conflict, unless it has the value already.
   */
  updateWith(version: number, value: unknown): Operation;
  /** Deletes the secret. One that is absent is success. */
  delete(): Operation;
  /** Describes an entry of a set, with a value that the host generates once. */
  content(options?: Partition): Content;
  /** Describes an entry of a set, with this value. */
  contentWith(value: unknown, options?: Partition): Content;
}
