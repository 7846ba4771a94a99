/** For whom a line is. */
export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** Fields stay apart from the message in structured logs. */
export type Fields = Record<string, unknown>;

/**
 * Lines of the host's log. The host adds the Configurator, the phase and the run's id to each, and drops lines past its limit: 1,000 lines
 * and 64 KiB a call, 4 KiB a line. Elsewhere, lines go to the console's errors.
 */
export const log: {
  /** A line with fields. */
  line(level: Level, message: string, fields?: Fields): void;
  /** For a person who follows every step. */
  trace(message: string, fields?: Fields): void;
  /** For a person who looks for a fault. */
  debug(message: string, fields?: Fields): void;
  /** What is worth knowing when all is well. */
  info(message: string, fields?: Fields): void;
  /** What is odd and does no harm yet. */
  warn(message: string, fields?: Fields): void;
  /** What went wrong. */
  error(message: string, fields?: Fields): void;
};
