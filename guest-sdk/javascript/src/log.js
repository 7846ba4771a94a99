// Lines of the host's log.
//
// The host adds the Configurator, the phase and the run's id to each line, and drops lines past its limit: 1,000 lines and 64 KiB a call,
// 4 KiB a line. Elsewhere, lines go to the console's errors.

let send = (level, message, fields) => {
  const known = fields.map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  console.error(`${level.toUpperCase()} ${message}${known.join('')}`);
};

/** Where lines go: the entry of a module connects the host's log. */
export function connect(host) {
  send = host;
}

function line(level, message, fields = {}) {
  send(level, String(message), Object.entries(fields).map(([name, value]) => [name, String(value)]));
}

export const log = {
  /** A line with fields, which stay apart from the message in structured logs. */
  line,
  /** For a person who follows every step. */
  trace: (message, fields) => line('trace', message, fields),
  /** For a person who looks for a fault. */
  debug: (message, fields) => line('debug', message, fields),
  /** What is worth knowing when all is well. */
  info: (message, fields) => line('info', message, fields),
  /** What is odd and does no harm yet. */
  warn: (message, fields) => line('warn', message, fields),
  /** What went wrong. */
  error: (message, fields) => line('error', message, fields),
};
