import { Context } from './context.js';
import { Json, text } from './document.js';
import { HandlerError } from './error.js';
import { entries, missing, Results } from './results.js';
import { State } from './state.js';

/** An object of the run. */
export class WatchedObject {
  #object;

  constructor({ object, event }) {
    this.event = event;
    this.objectJson = new Json(object);
  }

  /** The object. */
  get object() {
    this.#object ??= this.objectJson.value;
    return this.#object;
  }
}

/**
 * What a handler decides on. The same input is to give the same output.
 *
 * Documents are parsed when they are asked for; what ends in `Json` is their text, which can be handed on untouched.
 */
export class Input {
  #wired;
  #objects;
  #plan;

  constructor(wired) {
    this.#wired = wired;
  }

  /** Facts about this call. */
  get context() {
    return new Context(this.#wired.context);
  }

  /** Whether the run is of a batch. */
  get isBatch() {
    return this.#wired.resourceObject.tag === 'batch';
  }

  /** All objects of the run: one, or those of the batch, which is never empty. */
  get objects() {
    if (!this.#objects) {
      const { val } = this.#wired.resourceObject;
      this.#objects = (this.isBatch ? val : [val]).map((one) => new WatchedObject(one));
    }
    return this.#objects;
  }

  /** The object. Of a batch, the first. */
  get object() {
    return this.objects[0].object;
  }

  /** The object as text, as it was watched. Of a batch, the first. */
  get objectJson() {
    return this.objects[0].objectJson;
  }

  /** Why the object is in the run. Of a batch, the first. */
  get event() {
    return this.objects[0].event;
  }

  /** The Configurator's `spec.parameters`, with those of the node laid over; an empty object where it has none. */
  get parameters() {
    return this.parametersJson.value;
  }

  /** The parameters as text. */
  get parametersJson() {
    return new Json(this.#wired.context.parameters);
  }

  /** What became of the requests of the previous phase. Empty in the root phase. */
  get results() {
    return new Results('the previous phase', this.#wired.requestResults);
  }

  /**
   * The result of the request of this name. A fatal error where there is none; the message lists what there is.
   *
   * A request that failed and was dropped has no result: use `resultOpt` for those.
   */
  result(name) {
    return this.results.result(name);
  }

  /** The result of the request of this name, or `undefined`. */
  resultOpt(name) {
    return this.results.resultOpt(name);
  }

  /** The results of all requests with this `groupBy`, in the order of the requests. A fatal error where there are none. */
  group(key) {
    return this.results.group(key);
  }

  /** The results of all requests with this `groupBy`; empty where no request had it. */
  groupOpt(key) {
    return this.results.groupOpt(key);
  }

  /** The keys of what the previous phase passed on. Empty in the root phase. */
  get args() {
    return this.#wired.passThroughArgs.map(([key]) => key);
  }

  /** What the previous phase passed on under this key. A fatal error where it did not. */
  arg(key) {
    const found = this.argJson(key);
    if (!found) {
      throw new HandlerError(missing('the previous phase', 'argument', key, this.#wired.passThroughArgs), { fatal: true });
    }
    return found.value;
  }

  /** What the previous phase passed on under this key, as text, or `undefined`. */
  argJson(key) {
    return find(this.#wired.passThroughArgs, key);
  }

  /** In a machine: what the previous entry of this handler left behind, where it is entered again. */
  get last() {
    const { last } = this.#wired;
    return last && new State(last);
  }

  /**
   * In a machine: the result of the request of this name that the entry before asked for.
   *
   * `undefined` on the first entry, where the request was not asked for, and where the host does not remember: then ask again.
   */
  answer(name) {
    return this.last?.results.resultOpt(name);
  }

  /** In a machine: the results of all requests with this `groupBy` that the entry before asked for; empty where `answer` is `undefined`. */
  answers(key) {
    return this.last?.results.groupOpt(key) ?? [];
  }

  /** In a machine: what this handler has noted with `Output.data`, or `undefined`. */
  get notes() {
    return this.last?.data;
  }

  /** In a machine: the paths of the steps that have left an output. */
  get outputs() {
    return this.#wired.outputs.map(([path]) => path);
  }

  /**
   * In a machine: what the step at this path has left with `Output.output`. A fatal error where it has not.
   *
   * The path is that within the flow; outside a flow it begins with the phase.
   */
  outputOf(path) {
    const found = this.outputJson(path);
    if (!found) {
      throw new HandlerError(missing('earlier steps', 'output', path, this.#wired.outputs), { fatal: true });
    }
    return found.value;
  }

  /** In a machine: what the step at this path has left, as text, or `undefined`. */
  outputJson(path) {
    return find(this.#wired.outputs, path);
  }

  /**
   * In a pipeline: the plan of the handlers before this one, and of this one. Elsewhere `undefined`.
   *
   * Its requests and entries are as the host sends them, and can be put back into an output: whole, or as changed copies. The object of an
   * entry is text, `entry.content.val`, which `Json` reads and `kubernetes.content` makes.
   */
  get plan() {
    this.#plan ??= given(this.#wired.plan);
    return this.#plan;
  }

  /**
   * An input for a test: of one object, or of a batch of `objects`.
   *
   * Without more it is the root phase of `{}`, first entry, first attempt, at the start of 2026. `argsOf` is the output of the phase
   * before, whose arguments are passed on; `planOf` is an output whose requests and set are the plan; what is not named here is a field of
   * `Context`.
   */
  static of({ object = {}, objects, event = 'modified', results = [], groups = {}, args = {}, argsOf, last, outputs = {}, planOf, ...facts } = {}) {
    const watched = (one) => ({ object: text(one), event });
    const planned = planOf?.toWire();
    const documents = (values) => Object.entries(values).map(([key, one]) => [key, text(one)]);
    return new Input({
      resourceObject: objects ? { tag: 'batch', val: objects.map(watched) } : { tag: 'one', val: watched(object) },
      requestResults: entries(results, groups),
      passThroughArgs: [...documents(args), ...(argsOf?.toWire().passThroughArgs ?? [])],
      last: last?.toWire(),
      outputs: documents(outputs),
      plan: planned && { requests: planned.requests, desired: planned.desired },
      context: Context.wireOf(facts),
    });
  }
}

/** A wire value with `undefined` for each option that is absent, as `request` and `desiredEntry` write it. The host sends `null`. */
function given(value) {
  if (Array.isArray(value)) {
    return value.map(given);
  }
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) {
    return value ?? undefined;
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, given(one)]));
}

function find(documents, key) {
  const found = documents.find(([known]) => known === key);
  return found && new Json(found[1]);
}
