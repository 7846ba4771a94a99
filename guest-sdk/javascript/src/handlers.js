import { text } from './document.js';
import { failure, HandlerError } from './error.js';
import { Output } from './output.js';

/**
 * Declares the handlers of a module, by name: its default export. Each is a function, or a function as `run` with what is said of it:
 *
 * - `description`: one sentence for `configurator inspect`.
 * - `view`: how a person sees its progress, in a machine: `none`, `check-list`, `object-detail`.
 * - `accepts`: whether it takes one object, a batch, or both: `one`, `batch`, `either`.
 * - `parametersSchema`: the JSON Schema that the Configurator's `spec.parameters` must meet. `configurator inspect` shows it; the host does
 *   not hold the parameters to it, so the handler has to.
 * - `capabilities`: what it may ask for at most, in the form of the Configurator's `spec.capabilities`. A host does not run the module
 *   where a Configurator grants less. Without it nothing is said.
 */
export function handlers(declared) {
  return new Handlers(declared);
}

/** The handlers of a module. */
export class Handlers {
  #all = new Map();

  constructor(declared) {
    for (const [name, one] of Object.entries(declared)) {
      const declaration = typeof one === 'function' ? { run: one } : one;
      const { run, description = '', view = 'none', accepts = 'one', parametersSchema, capabilities } = declaration;
      if (!name || typeof run !== 'function') {
        throw new TypeError(`the handler "${name}" needs a name and a function`);
      }
      const documents = { parametersSchema: optional(parametersSchema), capabilities: optional(capabilities) };
      this.#all.set(name, { run, said: { name, description, view, accepts, ...documents } });
    }
    if (this.#all.size === 0) {
      throw new TypeError('a module needs at least one handler');
    }
  }

  /** What the module has, in the order of declaration. */
  describe() {
    return { handlers: [...this.#all.values()].map(({ said }) => said) };
  }

  /** Calls the handler of this name as the host does: whatever it throws is a `HandlerError`. */
  call(name, input) {
    const found = this.#all.get(name);
    if (!found) {
      const known = [...this.#all.keys()].join(', ');
      throw new HandlerError(`this module has no handler \`${name}\`; it has: ${known}`, { fatal: true });
    }
    const { run, said } = found;
    if (said.accepts === 'one' && input.isBatch) {
      const message = `handler \`${name}\` takes one object, and got a batch: remove \`chain.batch\` from the Configurator`;
      throw new HandlerError(message, { fatal: true });
    }
    if (said.accepts === 'batch' && !input.isBatch) {
      const message = `handler \`${name}\` takes a batch, and got one object: add \`chain.batch\` to the Configurator`;
      throw new HandlerError(message, { fatal: true });
    }
    try {
      const output = run(input);
      if (!(output instanceof Output)) {
        throw new TypeError(`handler \`${name}\` returned ${kind(output)}, not an Output`);
      }
      return output;
    } catch (error) {
      throw failure(error);
    }
  }
}

function optional(value) {
  return value === undefined ? undefined : text(value);
}

function kind(value) {
  return value?.constructor?.name ?? String(value);
}
