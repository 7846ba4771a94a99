import type { Operation } from './request.js';

/** An extension by its name. A host without it refuses its requests with `unsupported-resource-operation`. */
export class Extension {
  constructor(name: string);
  /** Does what the verb of the extension says to this target. */
  request(verb: string, target: string): Operation;
  /** Does what the verb says to this target, with a body. */
  requestWith(verb: string, target: string, body: unknown): Operation;
}
