// RING_HASH (Ketama): each host has places on a ring of 64-bit numbers. A request is sent to the host of the first place at or
// after its hash. Places are the same as in Envoy, so that both send a request to the same host.

import { type HostList, type LoadBalancer, murmurHash2, type Random, Word64, xxh64 } from '../../sdk.js';

/** Limits for the number of places on a ring. */
export interface RingSize {
  readonly minSize: number;
  readonly maxSize: number;
}

export interface RingSettings extends RingSize {
  /** Hosts are hashed by their names instead of their addresses. */
  readonly usesHostname: boolean;
  /** Places are found with MURMUR_HASH_2 instead of XX_HASH. */
  readonly usesMurmur: boolean;
}

export class HashRing implements LoadBalancer {
  readonly #places: Places;

  private constructor(places: Places) {
    this.#places = places;
  }

  /** Builds a ring. Yields about every millisecond: a ring may have 8 million places. */
  static *build(list: HostList, settings: RingSettings): Generator<void, HashRing> {
    const counts = hostCounts(list, settings);
    const hashPlace = settings.usesMurmur ? murmurHash2 : xxh64;
    const places = yield* unsortedPlaces(list.hosts, list.keys(settings.usesHostname), counts, hashPlace);
    return new HashRing(yield* sorted(places));
  }

  pick(random: Random, hash?: Word64, attempt = 0): number {
    const { hosts } = this.#places;
    const place =
      hash === undefined
        ? this.#find(random.nextUint32(), random.nextUint32())
        : this.#find(hash.hi >>> 0, hash.lo >>> 0);
    return hosts[(place + attempt) % hosts.length]!;
  }

  /** Returns the first place at or after a hash. After the last place the ring continues with the first. */
  #find(hi: number, lo: number): number {
    const { highs, lows, runs, shift } = this.#places;
    let place = runs[hi >>> shift]!;
    while (place < highs.length && (highs[place]! < hi || (highs[place] === hi && lows[place]! < lo))) place++;
    return place === highs.length ? 0 : place;
  }
}

/** Returns the number of places of each host of a list. */
export function hostCounts({ shares, weights }: Pick<HostList, 'shares' | 'weights'>, size: RingSize): Uint32Array {
  return shares === undefined ? ringCounts(weights, size) : ringCounts(shares, size, 1);
}

/**
 * Returns the number of places of each host, in proportion to its weight. The lightest host has a whole number of places; the sum
 * is minSize or slightly more, but at most maxSize. With more hosts than maxSize some have none.
 * @param sum that the weights are parts of; by default their own
 */
export function ringCounts(
  weights: Uint32Array | Float64Array,
  { minSize, maxSize }: RingSize,
  sum = total(weights),
): Uint32Array {
  const counts = new Uint32Array(weights.length);
  if (weights.length === 0) return counts;
  const least = smallest(weights) / sum;
  const scale = Math.min(Math.ceil(least * minSize) / least, maxSize);
  let target = 0;
  let given = 0;
  for (let item = 0; item < weights.length; item++) {
    target += scale * (weights[item]! / sum);
    const upTo = Math.max(given, Math.ceil(target));
    counts[item] = upTo - given;
    given = upTo;
  }
  return counts;
}

function total(weights: Uint32Array | Float64Array): number {
  let sum = 0;
  for (const weight of weights) sum += weight;
  return sum;
}

function smallest(weights: Uint32Array | Float64Array): number {
  let least = Number.POSITIVE_INFINITY;
  for (const weight of weights) if (weight < least) least = weight;
  return least;
}

/** The places of a ring, in columns: a ring of 8 million places takes 100 MB. */
interface Places {
  readonly highs: Uint32Array;
  readonly lows: Uint32Array;
  readonly hosts: Int32Array;
  /**
   * Index of the first place of each run. A run is the places with equal upper bits (all but `shift`). Runs are short: hashes are
   * uniform.
   */
  readonly runs: Uint32Array;
  readonly shift: number;
}

/** Places that are hashed or moved in a step. */
const STEP = 8192;
const COUNTS_PER_STEP = 65_536;
/** Approximate number of places in a run. */
const RUN = 4;

function emptyPlaces(count: number): Places {
  const bits = Math.max(1, Math.ceil(Math.log2(count / RUN)));
  return {
    highs: new Uint32Array(count),
    lows: new Uint32Array(count),
    hosts: new Int32Array(count),
    runs: new Uint32Array(2 ** bits + 1),
    shift: 32 - bits,
  };
}

/** Computes the places in the order of hosts. `runs[i + 1]` is the number of places in run i. */
function* unsortedPlaces(
  hosts: Int32Array,
  keys: readonly string[],
  counts: Uint32Array,
  hashPlace: typeof murmurHash2,
): Generator<void, Places> {
  const places = emptyPlaces(counts.reduce((total, count) => total + count, 0));
  const hash = new Word64();
  let place = 0;
  for (let item = 0; item < counts.length; item++) {
    const key = new NumberedKey(keys[item]!);
    for (let number = 0; number < counts[item]!; number++) {
      hashPlace(key.bytes, 0, key.write(number), hash);
      places.highs[place] = hash.hi;
      places.lows[place] = hash.lo;
      places.hosts[place] = hosts[item]!;
      places.runs[(hash.hi >>> places.shift) + 1]!++;
      if (++place % STEP === 0) yield;
    }
  }
  return places;
}

/** Sorts places by run and then within each run, which costs little more than moving each place once. */
function* sorted(from: Places): Generator<void, Places> {
  const count = from.hosts.length;
  const columns = { highs: new Uint32Array(count), lows: new Uint32Array(count), hosts: new Int32Array(count) };
  const places: Places = { ...from, ...columns };
  const { runs, shift } = places;
  for (let run = 1; run < runs.length; run++) {
    runs[run]! += runs[run - 1]!;
    if (run % COUNTS_PER_STEP === 0) yield;
  }
  const next = runs.slice();
  for (let old = 0; old < from.highs.length; old++) {
    const place = next[from.highs[old]! >>> shift]!++;
    put(places, place, from.highs[old]!, from.lows[old]!, from.hosts[old]!);
    if (old % STEP === 0) yield;
  }
  for (let run = 0; run < runs.length - 1; run++) {
    sortRun(places, runs[run]!, runs[run + 1]!);
    if (run % (STEP / RUN) === 0) yield;
  }
  return places;
}

/** Insertion sort. It is stable: hosts with equal hashes keep their order. */
function sortRun(places: Places, start: number, end: number): void {
  const { highs, hosts, lows } = places;
  for (let at = start + 1; at < end; at++) {
    const hi = highs[at]!;
    const lo = lows[at]!;
    const host = hosts[at]!;
    let to = at;
    for (; to > start && (highs[to - 1]! > hi || (highs[to - 1] === hi && lows[to - 1]! > lo)); to--) {
      put(places, to, highs[to - 1]!, lows[to - 1]!, hosts[to - 1]!);
    }
    put(places, to, hi, lo, host);
  }
}

function put({ highs, hosts, lows }: Places, at: number, hi: number, lo: number, host: number): void {
  highs[at] = hi;
  lows[at] = lo;
  hosts[at] = host;
}

/** Writes `<key>_<number>`, which is hashed for each place, to one reused buffer. */
class NumberedKey {
  readonly bytes: Uint8Array;
  readonly #start: number;

  constructor(key: string) {
    this.bytes = new Uint8Array(key.length + 1 + MAX_DIGITS);
    for (let at = 0; at < key.length; at++) this.bytes[at] = key.charCodeAt(at);
    this.bytes[key.length] = 95;
    this.#start = key.length + 1;
  }

  /** Writes the number. Returns the end offset. */
  write(number: number): number {
    let end = this.#start + 1;
    for (let rest = number; rest >= 10; rest = Math.trunc(rest / 10)) end++;
    let rest = number;
    for (let at = end - 1; at >= this.#start; at--) {
      this.bytes[at] = 48 + (rest % 10);
      rest = Math.trunc(rest / 10);
    }
    return end;
  }
}

/** Maximum decimal digits of a place's number. */
const MAX_DIGITS = 7;
