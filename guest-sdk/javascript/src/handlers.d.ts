import type { Input } from './input.js';
import type { Output } from './output.js';

/** A handler: a plain function, which is not async. */
export type Run = (input: Input) => Output;

/** A handler, and what is said of it. */
export interface HandlerDeclaration {
  run: Run;
  /** One sentence for `configurator inspect`. */
  description?: string;
  /** How a person sees its progress, in a machine. By default `none`. */
  view?: 'none' | 'check-list' | 'object-detail';
  /** Whether it takes one object, a batch, or both. By default `one`. */
  accepts?: 'one' | 'batch' | 'either';
  /**
   * The JSON Schema that the Configurator's `spec.parameters` must meet. `configurator inspect` shows it; the host does not hold the
   * parameters to it, so the handler has to.
   */
  parametersSchema?: unknown;
  /**
   * What it may ask for at most, in the form of the Configurator's `spec.capabilities`. A host does not run the module where a
   * Configurator grants less. Without it nothing is said.
   */
  capabilities?: unknown;
}

/** A handler as the host is told of it, with its documents as JSON texts. */
export interface HandlerDescription {
  name: string;
  description: string;
  view: string;
  accepts: string;
  parametersSchema?: string;
  capabilities?: string;
}

/** The handlers of a module. */
export class Handlers {
  constructor(declared: Record<string, Run | HandlerDeclaration>);
  /** What the module has, in the order of declaration. */
  describe(): { handlers: HandlerDescription[] };
  /** Calls the handler of this name as the host does: whatever it throws is a `HandlerError`. */
  call(name: string, input: Input): Output;
}

/** Declares the handlers of a module, by name: its default export. */
export function handlers(declared: Record<string, Run | HandlerDeclaration>): Handlers;
