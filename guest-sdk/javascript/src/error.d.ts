/** What an error may say beside its message. */
export interface HandlerErrorOptions {
  /** Whether the same input will always give it. Then the phase fails at once. */
  fatal?: boolean;
  /** When to call again, in milliseconds, in place of the Configurator's backoff. No use on a fatal error. */
  retryAfter?: number;
  /** Looked up in the Configurator's `errorCodes`, in a machine. */
  code?: string;
}

/**
 * What a handler throws when it cannot decide.
 *
 * Unless it is fatal, the handler is called again. Anything else that a handler throws is taken for one that is not fatal, with its name and
 * message.
 */
export class HandlerError extends Error {
  constructor(message: string, options?: HandlerErrorOptions);
  readonly fatal: boolean;
  readonly retryAfter: number | undefined;
  readonly code: string | undefined;
}
