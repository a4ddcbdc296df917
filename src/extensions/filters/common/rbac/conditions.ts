// What a policy can ask of a request, or of a connection, compiled to a tree.

import {
  type HeaderBlock,
  type HeaderRule,
  type IpRange,
  ipOfAddress,
  isInRange,
  parseIp,
  portOfAddress,
  type StreamInfo,
  type StringRule,
} from '../../../sdk.js';

/** The addresses that policies ask for. */
export type Ends = Pick<
  StreamInfo,
  'downstream' | 'downstreamRemoteAddress' | 'downstreamDirectRemoteAddress' | 'downstreamLocalAddress'
>;

export interface Condition {
  /** `headers`: undefined of a connection, of which nothing holds that is asked of headers. */
  holds(headers: HeaderBlock | undefined, ends: Ends): boolean;
}

export const ALWAYS: Condition = { holds: () => true };

/** All of several. */
export class Every implements Condition {
  readonly #conditions: readonly Condition[];

  constructor(conditions: readonly Condition[]) {
    this.#conditions = conditions;
  }

  holds(headers: HeaderBlock | undefined, ends: Ends): boolean {
    for (const condition of this.#conditions) if (!condition.holds(headers, ends)) return false;
    return true;
  }
}

/** One of several. */
export class Some implements Condition {
  readonly #conditions: readonly Condition[];

  constructor(conditions: readonly Condition[]) {
    this.#conditions = conditions;
  }

  holds(headers: HeaderBlock | undefined, ends: Ends): boolean {
    for (const condition of this.#conditions) if (condition.holds(headers, ends)) return true;
    return false;
  }
}

export class Not implements Condition {
  readonly #condition: Condition;

  constructor(condition: Condition) {
    this.#condition = condition;
  }

  holds(headers: HeaderBlock | undefined, ends: Ends): boolean {
    return !this.#condition.holds(headers, ends);
  }
}

export class HeaderCondition implements Condition {
  readonly #rule: HeaderRule;

  constructor(rule: HeaderRule) {
    this.#rule = rule;
  }

  holds(headers: HeaderBlock | undefined): boolean {
    return headers !== undefined && this.#rule.matches(headers);
  }
}

const QUERY = 63;
const FRAGMENT = 35;

/** The path without query and fragment. */
export class PathCondition implements Condition {
  readonly #rule: StringRule;

  constructor(rule: StringRule) {
    this.#rule = rule;
  }

  holds(headers: HeaderBlock | undefined): boolean {
    if (headers === undefined) return false;
    const { memory, pathEnd, pathStart } = headers;
    let end = pathStart;
    while (end < pathEnd && memory.bytes[end] !== QUERY && memory.bytes[end] !== FRAGMENT) end++;
    return this.#rule.matches(memory, pathStart, end);
  }
}

/** Which of the addresses of a connection is meant, as text with port. */
export type AddressOf = (ends: Ends) => string;

export class AddressCondition implements Condition {
  readonly #range: IpRange;
  readonly #addressOf: AddressOf;

  constructor(range: IpRange, addressOf: AddressOf) {
    this.#range = range;
    this.#addressOf = addressOf;
  }

  /** Unix sockets are in no range. */
  holds(_headers: HeaderBlock | undefined, ends: Ends): boolean {
    // Without the zone of a link-local address: ranges have none.
    const ip = parseIp(ipOfAddress(this.#addressOf(ends)).replace(/%.*/, ''));
    return ip !== undefined && isInRange(this.#range, ip);
  }
}

/** The port that the client has connected to is one from `first` on, below `end`. */
export class PortCondition implements Condition {
  readonly #first: number;
  readonly #end: number;

  constructor(first: number, end: number) {
    this.#first = first;
    this.#end = end;
  }

  holds(_headers: HeaderBlock | undefined, { downstreamLocalAddress: local }: Ends): boolean {
    // 0 for Unix sockets, as in Envoy.
    const port = portOfAddress(local);
    return this.#first <= port && port < this.#end;
  }
}
