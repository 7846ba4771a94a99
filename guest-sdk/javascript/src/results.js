import { HandlerError } from './error.js';
import { Result } from './result.js';

/** Results by the name of their request, and groups of them by their key, in the order of the requests. */
export class Results {
  #who;
  #entries;

  constructor(who, entries) {
    this.#who = who;
    this.#entries = entries;
  }

  /** The result of the request of this name. A fatal error where there is none, or a group has this key. */
  result(name) {
    const { tag, val } = this.#entry(name);
    if (tag === 'one') {
      return new Result(val);
    }
    const message = `\`${name}\` is a group of results, not the result of one request: read it as a group`;
    throw new HandlerError(message, { fatal: true });
  }

  /** The result of the request of this name, or `undefined`: also where a group has this key. */
  resultOpt(name) {
    const entry = this.#find(name);
    return entry?.tag === 'one' ? new Result(entry.val) : undefined;
  }

  /** The results of all requests with this `groupBy`. A fatal error where there are none, or a single request has this name. */
  group(key) {
    const { tag, val } = this.#entry(key);
    if (tag === 'group') {
      return val.map((one) => new Result(one));
    }
    const message = `\`${key}\` is the result of one request, not a group: read it as a result`;
    throw new HandlerError(message, { fatal: true });
  }

  /** The results of all requests with this `groupBy`; empty where no request had it. */
  groupOpt(key) {
    const entry = this.#find(key);
    return entry?.tag === 'group' ? entry.val.map((one) => new Result(one)) : [];
  }

  /** Every result by its name, and every group by its key. */
  all() {
    return this.#entries.map(([key, { tag, val }]) => [key, tag === 'one' ? new Result(val) : val.map((one) => new Result(one))]);
  }

  #find(key) {
    return this.#entries.find(([known]) => known === key)?.[1];
  }

  #entry(key) {
    const found = this.#find(key);
    if (!found) {
      throw new HandlerError(missing(this.#who, 'result', key, this.#entries), { fatal: true });
    }
    return found;
  }
}

/** What to say where `who` has left no `what` under this key. */
export function missing(who, what, key, known) {
  const names = known.map(([name]) => name).join(', ') || `no ${what}s`;
  return `no ${what} \`${key}\`: ${who} left ${names}`;
}

/** As the host gives them. */
export function entries(results, groups) {
  return [
    ...results.map((one) => [one.name, { tag: 'one', val: one.toWire() }]),
    ...Object.entries(groups).map(([key, group]) => [key, { tag: 'group', val: group.map((one) => one.toWire()) }]),
  ];
}
