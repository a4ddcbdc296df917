// Routes whose cluster is chosen for each request: by weight, or by the name that a header gives.

import { BatonError } from '../../common/errors.js';
import { type HeaderKey, headerKey } from '../../common/header-names.js';
import type { WeightedCluster, WeightedCluster_ClusterWeight } from '../../config/generated/api.js';
import type { HeaderBlock } from '../header-block.js';
import type { Route } from './route.js';
import type { RouteChoice } from './route-entry.js';

/** weighted_clusters: a route for each, in proportion. */
export class WeightedChoice<C> implements RouteChoice<C> {
  readonly #routes: Route<C>[] = [];
  /** Sums of the weights up to and with each route. */
  readonly #sums: number[] = [];
  readonly #total: number;

  /** @throws BatonError when the weights make no sense; `where` is the path of the message in the configuration. */
  constructor(
    config: WeightedCluster,
    where: string,
    make: (weight: WeightedCluster_ClusterWeight, where: string) => Route<C>,
  ) {
    let total = 0;
    (config.clusters ?? []).forEach((weight, index) => {
      total += weight.weight ?? 0;
      this.#routes.push(make(weight, `${where}.clusters[${index}]`));
      this.#sums.push(total);
    });
    if (total === 0 || total > LARGEST_TOTAL) {
      const message = `the weights of the clusters add up to ${total}`;
      throw new BatonError('CONFIG_INVALID', message, { where, remedy: `give a sum between 1 and ${LARGEST_TOTAL}` });
    }
    if (config.total_weight !== undefined && config.total_weight !== total) {
      const message = `the weights of the clusters add up to ${total}, not to ${config.total_weight}`;
      throw new BatonError('CONFIG_INVALID', message, { where: `${where}.total_weight` });
    }
    this.#total = total;
  }

  choose(_headers: HeaderBlock, random: number): Route<C> {
    const point = (mix(random) / TWO_TO_32) * this.#total;
    const sums = this.#sums;
    for (let i = 0; i < sums.length; i++) if (point < sums[i]!) return this.#routes[i]!;
    return this.#routes[this.#routes.length - 1]!;
  }
}

/** cluster_header: routes are kept for names that some cluster has, so clients can't make the list grow. */
export class ClusterByHeader<C> implements RouteChoice<C> {
  readonly #key: HeaderKey;
  readonly #make: (name: string) => Route<C>;
  readonly #routes = new Map<string, Route<C>>();

  constructor(header: string, make: (name: string) => Route<C>) {
    this.#key = headerKey(header);
    this.#make = make;
  }

  choose(headers: HeaderBlock): Route<C> {
    const name = headers.get(this.#key) ?? '';
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    const route = this.#make(name);
    if (route.cluster !== undefined) this.#routes.set(name, route);
    return route;
  }
}

const TWO_TO_32 = 2 ** 32;
const LARGEST_TOTAL = TWO_TO_32 - 1;

/** Another number from the same random one: a route's fraction has already looked at it. */
function mix(random: number): number {
  let word = Math.imul(random ^ (random >>> 16), 0x21f0aaad);
  word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
  return (word ^ (word >>> 15)) >>> 0;
}
