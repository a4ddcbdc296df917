// MAGLEV: a table of hosts that is indexed by a request's hash. Hosts take turns; each takes the next free entry of its own
// permutation (Eisenbud et al. 2016). Entries are the same as in Envoy, so that both send a request to the same host.

import { type HostList, type LoadBalancer, type Random, Word64, xxh64Text } from '../../sdk.js';

export interface TableSettings {
  /** Hosts are hashed by their names instead of their addresses. */
  readonly usesHostname: boolean;
  /** Number of entries, a prime. */
  readonly tableSize: number;
}

export class MaglevTable implements LoadBalancer {
  readonly #table: Int32Array;

  private constructor(table: Int32Array) {
    this.#table = table;
  }

  /** Builds a table. Yields about every millisecond. */
  static *build(list: HostList, settings: TableSettings): Generator<void, MaglevTable> {
    const weights = list.shares ?? list.weights;
    const { tableSize: size } = settings;
    const keys = list.keys(settings.usesHostname);
    const heaviest = largest(weights);
    const order = keyOrder(keys);
    const entries: Candidate[] = [];
    for (const item of order) if (entries.push(new Candidate(keys[item]!, size)) % NEW_PER_STEP === 0) yield;
    const table = new Int32Array(size).fill(-1);
    let work = 0;
    for (let round = 1, left = size; left > 0; round++) {
      for (let place = 0; place < entries.length && left > 0; place++) {
        if (++work % STEP === 0) yield;
        const entry = entries[place]!;
        const item = order[place]!;
        if (entry.turns === turnsBy(round, weights[item]!, heaviest)) continue;
        while (table[entry.next] !== -1) {
          entry.skip();
          if (++work % STEP === 0) yield;
        }
        table[entry.next] = list.hosts[item]!;
        entry.turns++;
        left--;
      }
    }
    return new MaglevTable(table);
  }

  pick(random: Random, hash?: Word64, attempt = 0): number {
    const table = this.#table;
    if (hash === undefined) return table[random.below(table.length)]!;
    if (attempt === 0) return table[hash.modulo(table.length)]!;
    // Changes nearly all bits: the following entries would be mostly the same hosts for all requests that are retried.
    other.set(~hash.hi, hash.lo ^ -attempt);
    return table[other.modulo(table.length)]!;
  }
}

const other = new Word64();

/** Hosts that are visited, or occupied entries that are skipped, in a step. */
const STEP = 32_768;
const NEW_PER_STEP = 1024;

/** Returns the number of entries of each host, without building the table. */
export function maglevCounts(
  list: Pick<HostList, 'weights' | 'shares' | 'keys'>,
  settings: TableSettings,
): Uint32Array {
  const weights = Float64Array.from(list.shares ?? list.weights);
  const { tableSize: size } = settings;
  if (weights.length === 0) return new Uint32Array(0);
  const heaviest = largest(weights);
  const total = (rounds: number) => weights.reduce((sum, weight) => sum + turnsBy(rounds, weight, heaviest), 0);
  let rounds = 0;
  for (let step = 2 ** 23; step >= 1; step /= 2) if (total(rounds + step) <= size) rounds += step;
  const counts = Uint32Array.from(weights, (weight) => turnsBy(rounds, weight, heaviest));
  let left = size - total(rounds);
  for (const item of keyOrder(list.keys(settings.usesHostname))) {
    if (left === 0) break;
    if (turnsBy(rounds + 1, weights[item]!, heaviest) === counts[item]) continue;
    counts[item]!++;
    left--;
  }
  return counts;
}

/**
 * Returns a host's turns in the first `rounds`: the heaviest hosts have one in each round, one of half their weight in every
 * second.
 */
function turnsBy(rounds: number, weight: number, heaviest: number): number {
  return Math.min(rounds, Math.floor((rounds * weight) / heaviest + ROUNDING) + 1);
}

/** Shares of a locality's weight are not whole numbers: a turn may not be missed because of the last bit. */
const ROUNDING = 1e-8;

function largest(weights: Uint32Array | Float64Array): number {
  let most = 0;
  for (const weight of weights) if (weight > most) most = weight;
  return most;
}

/**
 * Returns hosts in the order of their keys. Turns follow it, so that the configuration's order of hosts does not change entries.
 */
function keyOrder(keys: readonly string[]): Uint32Array {
  const order = Uint32Array.from(keys, (_, item) => item);
  return order.sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b));
}

/** A host that takes entries, with its permutation. */
class Candidate {
  /** The entry to take next if it is free. */
  next: number;
  turns = 0;
  readonly #step: number;
  readonly #size: number;

  constructor(key: string, size: number) {
    const hash = new Word64();
    xxh64Text(key, hash);
    this.next = hash.modulo(size);
    xxh64Text(key, hash, 1);
    this.#step = hash.modulo(size - 1) + 1;
    this.#size = size;
  }

  skip(): void {
    this.next += this.#step;
    if (this.next >= this.#size) this.next -= this.#size;
  }
}
