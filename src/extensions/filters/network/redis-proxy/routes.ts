// Which cluster gets a key: that of the longest prefix, or that of all other keys.

import type { RedisProxy_PrefixRoutes, RedisProxy_PrefixRoutes_Route } from '../../../../config/generated/api.js';
import type { ClusterReference, Random, RuntimeFraction, WorkerContext } from '../../../sdk.js';

export interface Mirror {
  readonly cluster: ClusterReference;
  readonly fraction: RuntimeFraction;
  readonly skipsReads: boolean;
}

export interface Route {
  readonly prefix: Buffer;
  readonly removesPrefix: boolean;
  readonly cluster: ClusterReference;
  /** For commands that change nothing; undefined: the same. */
  readonly readCluster: ClusterReference | undefined;
  readonly mirrors: readonly Mirror[];
}

const ALWAYS = { numerator: 100, denominator: 'HUNDRED' } as const;

export class Routes {
  /** The longest prefixes first. */
  readonly #routes: readonly Route[];
  readonly #ignoresCase: boolean;
  readonly #catchAll: Route | undefined;

  constructor(config: RedisProxy_PrefixRoutes, context: WorkerContext) {
    const compile = (route: RedisProxy_PrefixRoutes_Route) => compileRoute(route, context);
    this.#ignoresCase = config.case_insensitive ?? false;
    this.#routes = (config.routes ?? []).map(compile).sort((a, b) => b.prefix.length - a.prefix.length);
    this.#catchAll = config.catch_all_route && compile(config.catch_all_route);
  }

  /** Returns undefined if no route has a prefix of the key. */
  find(key: Buffer): Route | undefined {
    for (const route of this.#routes) if (this.#matches(key, route.prefix)) return route;
    return this.#catchAll;
  }

  #matches(key: Buffer, prefix: Buffer): boolean {
    if (key.length < prefix.length) return false;
    const start = key.subarray(0, prefix.length);
    if (!this.#ignoresCase) return start.equals(prefix);
    for (let at = 0; at < prefix.length; at++) {
      if (start[at] !== prefix[at] && lowerCase(start[at]!) !== lowerCase(prefix[at]!)) return false;
    }
    return true;
  }
}

/** Only ASCII letters have two cases: other bytes are parts of characters. */
function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

function compileRoute(config: RedisProxy_PrefixRoutes_Route, { clusters, runtime }: WorkerContext): Route {
  const read = config.read_command_policy?.cluster;
  return {
    prefix: Buffer.from(config.prefix ?? ''),
    removesPrefix: config.remove_prefix ?? false,
    cluster: clusters.reference(config.cluster!),
    readCluster: read === undefined ? undefined : clusters.reference(read),
    mirrors: (config.request_mirror_policy ?? []).map((mirror) => ({
      cluster: clusters.reference(mirror.cluster!),
      fraction: runtime.fractionOf(mirror.runtime_fraction, ALWAYS),
      skipsReads: mirror.exclude_read_commands ?? false,
    })),
  };
}

export function isMirrored({ fraction, skipsReads }: Mirror, isRead: boolean, random: Random): boolean {
  return !(skipsReads && isRead) && fraction.isHit(random);
}
