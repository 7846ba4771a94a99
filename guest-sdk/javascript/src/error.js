import { log } from './log.js';

/**
 * What a handler throws when it cannot decide.
 *
 * Unless it is `fatal`, the handler is called again: after `retryAfter` milliseconds, or the Configurator's backoff. A fatal error is one
 * that the same input will always give: the phase fails at once. `code` is looked up in the Configurator's `errorCodes`, in a machine.
 *
 * Anything else that a handler throws is taken for one that is not fatal, with its name and message.
 */
export class HandlerError extends Error {
  constructor(message, { fatal = false, retryAfter, code } = {}) {
    super(message);
    this.name = 'HandlerError';
    this.fatal = fatal;
    this.retryAfter = retryAfter;
    this.code = code;
  }

  /** As the host gives it, with `null` for an option that is absent. */
  static ofWire({ message, fatal, retryAfter, code }) {
    const wait = retryAfter == null ? undefined : Number(retryAfter);
    return new HandlerError(message, { fatal, retryAfter: wait, code: code ?? undefined });
  }

  /** As the host takes it. */
  toWire() {
    const { message, fatal, retryAfter, code } = this;
    return { message, fatal, retryAfter: milliseconds(retryAfter), code };
  }
}

/** What was thrown, as the error that a handler may throw. The stack of any other goes to the log. */
export function failure(thrown) {
  if (thrown instanceof HandlerError) {
    return thrown;
  }
  log.error(thrown instanceof Error ? `${thrown}\n${thrown.stack}` : String(thrown));
  return new HandlerError(String(thrown));
}

/** A span as the contract has it: whole milliseconds, and never fewer than none. */
export function milliseconds(span) {
  return span === undefined ? undefined : Math.max(0, Math.trunc(span));
}
