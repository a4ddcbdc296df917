// Finds the filter chain of a connection, with the matches of a listener's chains compiled to a table.
//
// As in Envoy, criteria are evaluated in order: destination port, destination address, transport protocol, direct source address,
// source type, source address, source port. Each keeps only the chains with the most specific matching value; later criteria do
// not bring others back.

import { ANY, CRITERIA, CRITERION_NAMES, type Criterion, groupsBy } from '../config/fields/filter-chains.js';
import type { FilterChainMatch } from '../config/generated/api.js';
import { type Address, AddressKind, parseIp } from '../io/addresses/address.js';
import { type IpRange, ipRange, RangeTable } from '../io/addresses/ip-range.js';
import type { ConnectionAddresses } from './network-filter.js';

export interface MatchedChain<T> {
  readonly match: FilterChainMatch | undefined;
  readonly chain: T;
}

/** The table of one version of a listener, whose matches do not overlap (overlapOf()). */
export class FilterChainTable<T> {
  /** The chain of every connection regardless of its addresses; undefined if addresses must be matched, or without chains. */
  readonly only: T | undefined;
  readonly #first: Step<T>;
  readonly #fallback: T | undefined;

  /** `fallback` is for connections that no chain matches (default_filter_chain). */
  constructor(chains: readonly MatchedChain<T>[], fallback: T | undefined) {
    const isAsked = (criterion: Criterion) =>
      chains.some(({ match }) => match !== undefined && CRITERIA[criterion](match)[0] !== ANY);
    this.only = !CRITERION_NAMES.some(isAsked) ? (chains[0]?.chain ?? fallback) : undefined;
    this.#first = new Compiler(chains).compile([...chains.keys()], 0);
    this.#fallback = fallback;
  }

  /** Returns undefined if no chain matches. */
  find(addresses: ConnectionAddresses): T | undefined {
    return this.#first.find(addresses) ?? this.#fallback;
  }
}

/** The remaining evaluation. */
interface Step<T> {
  find(addresses: ConnectionAddresses): T | undefined;
}

/** Steps by the value of the criterion. */
type NextSteps<T> = ReadonlyMap<string, Step<T>>;

class Compiler<T> {
  readonly #chains: readonly MatchedChain<T>[];
  /** Keyed by criterion and remaining chains: lists of ranges and ports often lead to the same ones. */
  readonly #known = new Map<string, Step<T>>();

  constructor(chains: readonly MatchedChain<T>[]) {
    this.#chains = chains;
  }

  /** @param left chains that earlier criteria have kept, by position */
  compile(left: readonly number[], at: number): Step<T> {
    const criterion = CRITERION_NAMES[at];
    if (criterion === undefined || left.length === 0) return new Found(this.#chains[left[0]!]?.chain);
    const key = `${at}:${left}`;
    let step = this.#known.get(key);
    if (step === undefined) {
      const next = new Map<string, Step<T>>();
      const groups = groupsBy(left, (index) => CRITERIA[criterion](this.#chains[index]!.match ?? {}));
      for (const [value, group] of groups) next.set(value, this.compile(group, at + 1));
      const any = next.get(ANY);
      step = any !== undefined && next.size === 1 ? any : stepOf(criterion, next);
      this.#known.set(key, step);
    }
    return step;
  }
}

function stepOf<T>(criterion: Criterion, next: NextSteps<T>): Step<T> {
  switch (criterion) {
    case 'destination_port':
      return new PortStep(next, 'local');
    case 'prefix_ranges':
      return new RangeStep(next, 'local');
    case 'transport_protocol':
      return next.get(RAW_BUFFER) ?? next.get(ANY) ?? new Found<T>(undefined);
    case 'source_type':
      return new SourceTypeStep(next);
    case 'direct_source_prefix_ranges':
      return new RangeStep(next, 'direct');
    case 'source_prefix_ranges':
      return new RangeStep(next, 'remote');
    case 'source_ports':
      return new PortStep(next, 'remote');
  }
}

class Found<T> implements Step<T> {
  readonly #chain: T | undefined;

  constructor(chain: T | undefined) {
    this.#chain = chain;
  }

  find(): T | undefined {
    return this.#chain;
  }
}

class PortStep<T> implements Step<T> {
  readonly #end: keyof ConnectionAddresses;
  readonly #any: Step<T> | undefined;
  readonly #byPort = new Map<number, Step<T>>();

  constructor(next: NextSteps<T>, end: keyof ConnectionAddresses) {
    this.#end = end;
    this.#any = next.get(ANY);
    for (const [value, step] of next) if (value !== ANY) this.#byPort.set(Number(value), step);
  }

  find(addresses: ConnectionAddresses): T | undefined {
    return (this.#byPort.get(addresses[this.#end].port) ?? this.#any)?.find(addresses);
  }
}

class RangeStep<T> implements Step<T> {
  readonly #end: keyof ConnectionAddresses;
  readonly #any: Step<T> | undefined;
  readonly #byRange: RangeTable<Step<T>>;

  constructor(next: NextSteps<T>, end: keyof ConnectionAddresses) {
    this.#end = end;
    this.#any = next.get(ANY);
    this.#byRange = new RangeTable([...next].flatMap(([text, step]) => (text === ANY ? [] : [[rangeOf(text), step]])));
  }

  find(addresses: ConnectionAddresses): T | undefined {
    return (this.#byRange.find(bytesOf(addresses[this.#end])) ?? this.#any)?.find(addresses);
  }
}

class SourceTypeStep<T> implements Step<T> {
  readonly #any: Step<T> | undefined;
  readonly #local: Step<T> | undefined;
  readonly #external: Step<T> | undefined;

  constructor(next: NextSteps<T>) {
    this.#any = next.get(ANY);
    this.#local = next.get('SAME_IP_OR_LOOPBACK') ?? this.#any;
    this.#external = next.get('EXTERNAL') ?? this.#any;
  }

  find(addresses: ConnectionAddresses): T | undefined {
    return (isLocal(addresses) ? this.#local : this.#external)?.find(addresses);
  }
}

/** The transport protocol of a connection that no listener filter has detected otherwise. */
const RAW_BUFFER = 'raw_buffer';

/** The address of Unix sockets for range matches, as in Envoy. */
const NO_IP = Uint8Array.of(255, 255, 255, 255);

function bytesOf({ ip }: Address): Uint8Array {
  const zone = ip.indexOf('%');
  return parseIp(zone < 0 ? ip : ip.slice(0, zone)) ?? NO_IP;
}

function rangeOf(text: string): IpRange {
  const [prefix = '', bits] = text.split('/');
  return ipRange(prefix, Number(bits))!;
}

/** Returns whether the peer is on this machine, by Envoy's rule: only 127.0.0.1 and ::1, or the same address at both ends. */
function isLocal({ remote, local }: ConnectionAddresses): boolean {
  if (remote.kind !== AddressKind.Ip4 && remote.kind !== AddressKind.Ip6) return true;
  return remote.ip === '127.0.0.1' || remote.ip === '::1' || remote.ip === local.ip;
}
