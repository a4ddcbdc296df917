// Finds the filter chain of a connection, with the matches of a listener's chains compiled to a table.
//
// As in Envoy, criteria are evaluated in order: destination port, destination address, server name, transport protocol, application
// protocol, direct source address, source type, source address, source port. Each keeps only the chains with the most specific matching value; later criteria do
// not bring others back.

import { ANY, CRITERIA, CRITERION_NAMES, type Criterion, groupsBy } from '../config/fields/filter-chains.js';
import type { FilterChainMatch } from '../config/generated/api.js';
import { type Address, AddressKind, parseIp } from '../io/addresses/address.js';
import { type IpRange, ipRange, RangeTable } from '../io/addresses/ip-range.js';
import type { ConnectionProperties } from './network-filter.js';

export interface MatchedChain<T> {
  readonly match: FilterChainMatch | undefined;
  readonly chain: T;
}

/** The table of one version of a listener, whose matches do not overlap (overlapOf()). */
export class FilterChainTable<T> {
  /** The chain of every connection regardless of its properties; undefined if properties must be matched, or without chains. */
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
  find(properties: ConnectionProperties): T | undefined {
    return this.#first.find(properties) ?? this.#fallback;
  }
}

/** The remaining evaluation. */
interface Step<T> {
  find(properties: ConnectionProperties): T | undefined;
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
    case 'server_names':
      return new ServerNameStep(next);
    case 'transport_protocol':
      return new TransportProtocolStep(next);
    case 'application_protocols':
      return new ApplicationProtocolStep(next);
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

/** An address of the connection. */
type End = 'remote' | 'direct' | 'local';

class PortStep<T> implements Step<T> {
  readonly #end: End;
  readonly #any: Step<T> | undefined;
  readonly #byPort = new Map<number, Step<T>>();

  constructor(next: NextSteps<T>, end: End) {
    this.#end = end;
    this.#any = next.get(ANY);
    for (const [value, step] of next) if (value !== ANY) this.#byPort.set(Number(value), step);
  }

  find(properties: ConnectionProperties): T | undefined {
    return (this.#byPort.get(properties[this.#end].port) ?? this.#any)?.find(properties);
  }
}

class RangeStep<T> implements Step<T> {
  readonly #end: End;
  readonly #any: Step<T> | undefined;
  readonly #byRange: RangeTable<Step<T>>;

  constructor(next: NextSteps<T>, end: End) {
    this.#end = end;
    this.#any = next.get(ANY);
    this.#byRange = new RangeTable([...next].flatMap(([text, step]) => (text === ANY ? [] : [[rangeOf(text), step]])));
  }

  find(properties: ConnectionProperties): T | undefined {
    return (this.#byRange.find(bytesOf(properties[this.#end])) ?? this.#any)?.find(properties);
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

  find(properties: ConnectionProperties): T | undefined {
    return (isLocal(properties) ? this.#local : this.#external)?.find(properties);
  }
}

/** The exact name, or else the longest wildcard. */
class ServerNameStep<T> implements Step<T> {
  readonly #any: Step<T> | undefined;
  /** Wildcards begin with a dot. */
  readonly #byName: NextSteps<T>;

  constructor(next: NextSteps<T>) {
    this.#any = next.get(ANY);
    this.#byName = next;
  }

  find(properties: ConnectionProperties): T | undefined {
    return this.#step(properties.detected?.serverName ?? '')?.find(properties);
  }

  #step(name: string): Step<T> | undefined {
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact;
    for (let dot = name.indexOf('.', 1); dot >= 0 && dot < name.length - 1; dot = name.indexOf('.', dot + 1)) {
      const wildcard = this.#byName.get(name.slice(dot));
      if (wildcard !== undefined) return wildcard;
    }
    return this.#any;
  }
}

class TransportProtocolStep<T> implements Step<T> {
  readonly #any: Step<T> | undefined;
  readonly #byProtocol: NextSteps<T>;

  constructor(next: NextSteps<T>) {
    this.#any = next.get(ANY);
    this.#byProtocol = next;
  }

  find(properties: ConnectionProperties): T | undefined {
    const protocol = properties.detected?.transportProtocol || RAW_BUFFER;
    return (this.#byProtocol.get(protocol) ?? this.#any)?.find(properties);
  }
}

/** The first of the client's protocols that any chain has. */
class ApplicationProtocolStep<T> implements Step<T> {
  readonly #any: Step<T> | undefined;
  readonly #byProtocol: NextSteps<T>;

  constructor(next: NextSteps<T>) {
    this.#any = next.get(ANY);
    this.#byProtocol = next;
  }

  find(properties: ConnectionProperties): T | undefined {
    return this.#step(properties.detected?.applicationProtocols ?? [])?.find(properties);
  }

  #step(protocols: readonly string[]): Step<T> | undefined {
    for (const protocol of protocols) {
      const step = this.#byProtocol.get(protocol);
      if (step !== undefined) return step;
    }
    return this.#any;
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
function isLocal({ remote, local }: ConnectionProperties): boolean {
  if (remote.kind !== AddressKind.Ip4 && remote.kind !== AddressKind.Ip6) return true;
  return remote.ip === '127.0.0.1' || remote.ip === '::1' || remote.ip === local.ip;
}
