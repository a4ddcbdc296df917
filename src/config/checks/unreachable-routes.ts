// Routes that no request reaches, because an earlier route of the virtual host takes all of their requests.

import { lowerAscii } from '../../common/text/lower-ascii.js';
import type { Route, RouteMatch } from '../generated/api.js';

/** A route that is not reached, and the earlier one that takes its requests; both by index. */
export interface UnreachableRoute {
  readonly index: number;
  readonly taker: number;
}

/**
 * Compares paths only: a route takes all requests of its path if it has no other condition. Finds what is certain, in time
 * proportional to the number of routes.
 */
export function* unreachableRoutes(routes: readonly (Route | undefined)[]): Generator<UnreachableRoute> {
  const taken = new TakenPaths();
  for (const [index, route] of routes.entries()) {
    const match = route?.match;
    if (match === undefined) continue;
    const taker = taken.takerOf(match);
    if (taker !== undefined) yield { index, taker };
    else if (Object.keys(match).every((field) => PATH_FIELDS.includes(field))) taken.add(match, index);
  }
}

const PATH_FIELDS: readonly string[] = [
  'prefix',
  'path',
  'path_separated_prefix',
  'safe_regex',
  'case_sensitive',
] satisfies (keyof RouteMatch)[];

/** What the routes so far take, with the index of the first that does. */
class TakenPaths {
  /** Compared exactly, and after folding to lower case. */
  readonly #exact = new Literals();
  readonly #folded = new Literals();
  readonly #patterns = new Map<string, number>();

  add(match: RouteMatch, index: number): void {
    const pattern = match.safe_regex?.regex;
    if (pattern !== undefined) note(this.#patterns, pattern, index);
    else if (match.case_sensitive === false) this.#folded.add(folded(match), index);
    else this.#exact.add(match, index);
  }

  takerOf(match: RouteMatch): number | undefined {
    const { case_sensitive: isSensitive = true, safe_regex: regex } = match;
    if (regex !== undefined) return this.#patterns.get(regex.regex ?? '') ?? this.#exact.takerOfAny();
    // A path in any case is taken by one without letters.
    const exact =
      isSensitive || !/[a-z]/i.test(literalOf(match)) ? this.#exact.takerOf(match) : this.#exact.takerOfAny();
    return exact ?? this.#folded.takerOf(folded(match));
  }
}

class Literals {
  readonly #prefixes = new Map<string, number>();
  readonly #paths = new Map<string, number>();
  /** Prefixes that end at a slash or with the path. */
  readonly #separated = new Map<string, number>();

  add({ path, path_separated_prefix: separated, prefix }: RouteMatch, index: number): void {
    if ((prefix ?? separated ?? '').length > MAX_PREFIX) return;
    // No path that is compared has a query.
    if (prefix !== undefined && !/[?#]/.test(prefix)) note(this.#prefixes, prefix, index);
    else if (path !== undefined) note(this.#paths, path, index);
    else if (separated !== undefined) note(this.#separated, separated, index);
  }

  /** Returns the route that takes every path, which begins with a slash. */
  takerOfAny(): number | undefined {
    return this.#prefixes.get('') ?? this.#prefixes.get('/');
  }

  takerOf(match: RouteMatch): number | undefined {
    const { path, prefix } = match;
    const literal = literalOf(match);
    if (literal === '') return prefix === undefined ? undefined : this.takerOfAny();
    for (let length = 0; length <= Math.min(literal.length, MAX_PREFIX); length++) {
      const start = literal.slice(0, length);
      const taker = this.#prefixes.get(start);
      if (taker !== undefined) return taker;
      // A prefix as long as the separated one goes on without a slash, too.
      const isSeparated = literal[length] === '/' || (length === literal.length && prefix === undefined);
      const separated = isSeparated ? this.#separated.get(start) : undefined;
      if (separated !== undefined) return separated;
    }
    return path === undefined ? undefined : this.#paths.get(path);
  }
}

/** Longer prefixes take nothing here: each length of a literal is looked up. */
const MAX_PREFIX = 1024;

function literalOf({ path, path_separated_prefix: separated, prefix }: RouteMatch): string {
  return prefix ?? path ?? separated ?? '';
}

function folded({ path, path_separated_prefix: separated, prefix }: RouteMatch): RouteMatch {
  if (prefix !== undefined) return { prefix: lowerAscii(prefix) };
  if (path !== undefined) return { path: lowerAscii(path) };
  return separated === undefined ? {} : { path_separated_prefix: lowerAscii(separated) };
}

function note(map: Map<string, number>, key: string, index: number): void {
  if (!map.has(key)) map.set(key, index);
}
