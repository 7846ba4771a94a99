import type { Result } from './result.js';

/** Results by the name of their request, and groups of them by their key, in the order of the requests. */
export class Results {
  private constructor();
  /** The result of the request of this name. A fatal error where there is none, or a group has this key. */
  result<T = any>(name: string): Result<T>;
  /** The result of the request of this name, or `undefined`: also where a group has this key. */
  resultOpt<T = any>(name: string): Result<T> | undefined;
  /** The results of all requests with this `groupBy`. A fatal error where there are none, or a single request has this name. */
  group<T = any>(key: string): Result<T>[];
  /** The results of all requests with this `groupBy`; empty where no request had it. */
  groupOpt<T = any>(key: string): Result<T>[];
  /** Every result by its name, and every group by its key. */
  all(): [string, Result | Result[]][];
}
