// Routes whose cluster is chosen for each request: by weight, or by a header.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { BatonError } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import { type HeaderKey, headerKey } from '../../../common/text/header-names.js';
import { Word64 } from '../../../common/xxh64.js';
import type { WeightedCluster, WeightedCluster_ClusterWeight } from '../../../config/generated/api.js';
import type { Runtime, RuntimeInteger } from '../../../runtime/runtime.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import type { HashPolicy } from '../hashing/hash-policy.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';
import type { Route } from './route.js';

/** Chooses one of the routes of an entry. */
export interface RouteChoice<C> {
  /**
   * @param random 0 … 2^32 - 1
   * @param info of the request; undefined: it has no hash
   * @returns undefined: there is no such route, and the following entries are tried
   */
  choose(headers: HeaderBlock, random: number, info: StreamInfo | undefined): Route<C> | undefined;
}

/** weighted_clusters: one route for each cluster, chosen in proportion to the weights. Runtime may override each weight. */
export class WeightedChoice<C> implements RouteChoice<C> {
  readonly #routes: Route<C>[] = [];
  readonly #weights: ClusterWeights;
  /** The field with the random number of a request; undefined: none. */
  readonly #header: HeaderKey | undefined;
  /** Requests with the same hash get the same cluster; undefined: it is random. */
  readonly #hash: HashPolicy | undefined;

  /**
   * Throws a BatonError when the weights are invalid.
   * @param where path of the message in the configuration
   * @param hash hash_policy of the route
   */
  constructor(
    config: WeightedCluster,
    where: string,
    runtime: Runtime,
    hash: HashPolicy | undefined,
    make: (weight: WeightedCluster_ClusterWeight, where: string) => Route<C>,
  ) {
    const clusters = config.clusters ?? [];
    this.#weights = new ClusterWeights(config, runtime);
    this.#header = numberHeader(config);
    this.#hash = config.use_hash_policy ? hash : undefined;
    clusters.forEach((weight, index) => {
      const at = `${where}.clusters[${index}]`;
      if (!weight.name) throw new BatonError('CONFIG_INVALID', 'it needs the name of a cluster', { where: at });
      this.#routes.push(make(weight, at));
    });
    const total = clusters.reduce((sum, { weight = 0 }) => sum + weight, 0);
    if (total === 0 || total > MAX_TOTAL_WEIGHT) {
      const message = `the weights of the clusters add up to ${total}`;
      throw new BatonError('CONFIG_INVALID', message, {
        where,
        remedy: `give a sum between 1 and ${MAX_TOTAL_WEIGHT}`,
      });
    }
  }

  choose(headers: HeaderBlock, random: number, info: StreamInfo | undefined): Route<C> {
    const { total } = this.#weights;
    return this.#routes[this.#weights.indexAt(this.#pointOf(headers, random, info, total))]!;
  }

  #pointOf(headers: HeaderBlock, random: number, info: StreamInfo | undefined, total: number): number {
    if (this.#hash !== undefined && info !== undefined && this.#hash.evaluate(headers, info, hashed, undefined))
      return hashed.modulo(total);
    const given = this.#header && givenNumber(headers, this.#header);
    return given === undefined ? (mix(random) / TWO_TO_32) * total : Number(given % BigInt(total));
  }
}

/** The weights of the clusters, each of which runtime may override. */
export class ClusterWeights {
  readonly #runtime: Runtime;
  readonly #weights: readonly RuntimeInteger[];
  readonly #configured: readonly number[];
  /** Running sums of the weights, as of #version of runtime. */
  #sums: readonly number[] = [];
  #total = 0;
  #version = -1;

  constructor({ clusters = [], runtime_key_prefix: prefix }: WeightedCluster, runtime: Runtime) {
    this.#runtime = runtime;
    this.#configured = clusters.map(({ weight }) => weight ?? 0);
    this.#weights = clusters.map(({ name, weight }) =>
      runtime.integer(prefix ? `${prefix}.${name}` : undefined, weight ?? 0),
    );
  }

  /** The current sum. Read it before indexAt(). */
  get total(): number {
    if (this.#version !== this.#runtime.version) this.#update();
    return this.#total;
  }

  /** Returns the cluster at a point from 0 to the sum, by index. */
  indexAt(point: number): number {
    const sums = this.#sums;
    for (let i = 0; i < sums.length; i++) if (point < sums[i]!) return i;
    return sums.length - 1;
  }

  /** Reads the weights from runtime. If their sum is 0, the configured weights apply. */
  #update(): void {
    this.#version = this.#runtime.version;
    this.#sums = runningSums(this.#weights.map((weight) => weight.value));
    if (this.#sums.at(-1) === 0) this.#sums = runningSums(this.#configured);
    this.#total = this.#sums.at(-1)!;
  }
}

/** The routes of an entry by the names of their clusters. Caches those of existing clusters only, so that clients cannot make it grow. */
export class RoutesByCluster<C> {
  readonly #make: (name: string) => Route<C>;
  readonly #routes = new Map<string, Route<C>>();

  constructor(make: (name: string) => Route<C>) {
    this.#make = make;
  }

  /** `name`: one character per byte. */
  to(name: string): Route<C> {
    const known = this.#routes.get(name);
    if (known !== undefined) return known;
    const text = Buffer.from(name, 'latin1').toString();
    // Invalid UTF-8 is kept as bytes: many such names would decode to the same text.
    const route = this.#make(byteText(text) === name ? text : name);
    if (route.cluster !== undefined) this.#routes.set(name, route);
    return route;
  }
}

/** cluster_header. */
export class ClusterByHeader<C> implements RouteChoice<C> {
  readonly #name: HeaderReader;
  readonly #routes: RoutesByCluster<C>;

  /** @throws BatonError CONFIG_INVALID; `where` is the path of cluster_header in the configuration */
  constructor(header: string, where: string, routes: RoutesByCluster<C>) {
    this.#name = headerReader(header, where);
    this.#routes = routes;
  }

  choose(headers: HeaderBlock): Route<C> {
    return this.#routes.to(this.#name(headers) ?? '');
  }
}

/** Reused for each request. */
const hashed = new Word64();

const TWO_TO_32 = 2 ** 32;
const TWO_TO_64 = 2n ** 64n;
const MAX_TOTAL_WEIGHT = TWO_TO_32 - 1;

/** Returns the header with the number of a request; undefined: it is random. */
export function numberHeader({ header_name: name }: WeightedCluster): HeaderKey | undefined {
  return name ? headerKey(name) : undefined;
}

/** Returns the number that a header field has; undefined unless there is one field with an unsigned 64-bit number. */
export function givenNumber(headers: HeaderBlock, key: HeaderKey): bigint | undefined {
  const index = headers.find(key);
  if (index < 0 || headers.find(key, index + 1) >= 0) return undefined;
  const text = headers.value(index).trim();
  if (!/^\d{1,20}$/.test(text)) return undefined;
  const number = BigInt(text);
  return number < TWO_TO_64 ? number : undefined;
}

function runningSums(weights: readonly number[]): number[] {
  let sum = 0;
  return weights.map((weight) => (sum += weight));
}

/** Derives an independent number from `random`, which a route's fraction has already used. */
function mix(random: number): number {
  let word = Math.imul(random ^ (random >>> 16), 0x21f0aaad);
  word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
  return (word ^ (word >>> 15)) >>> 0;
}
