// The conditions of RBAC policies on a request or a connection, compiled to a tree.

import {
  configuredMetadata,
  type HeaderBlock,
  type HeaderRule,
  type IpRange,
  ipOfAddress,
  isInRange,
  type MetadataRule,
  parseIp,
  portOfAddress,
  type StreamInfo,
  type StringRule,
} from '../../../sdk.js';

/** The properties that conditions use, besides headers. */
export type Addresses = Pick<
  StreamInfo,
  | 'downstream'
  | 'downstreamRemoteAddress'
  | 'downstreamDirectRemoteAddress'
  | 'downstreamLocalAddress'
  | 'dynamicMetadata'
  | 'filterState'
  | 'route'
>;

export interface Condition {
  /** Returns whether the condition holds. `headers` is undefined for a connection; header conditions are then false. */
  holds(headers: HeaderBlock | undefined, addresses: Addresses): boolean;
}

export const ALWAYS: Condition = { holds: () => true };

/** Logical AND. */
export class Every implements Condition {
  readonly #conditions: readonly Condition[];

  constructor(conditions: readonly Condition[]) {
    this.#conditions = conditions;
  }

  holds(headers: HeaderBlock | undefined, addresses: Addresses): boolean {
    for (const condition of this.#conditions) if (!condition.holds(headers, addresses)) return false;
    return true;
  }
}

/** Logical OR. */
export class Some implements Condition {
  readonly #conditions: readonly Condition[];

  constructor(conditions: readonly Condition[]) {
    this.#conditions = conditions;
  }

  holds(headers: HeaderBlock | undefined, addresses: Addresses): boolean {
    for (const condition of this.#conditions) if (condition.holds(headers, addresses)) return true;
    return false;
  }
}

export class Not implements Condition {
  readonly #condition: Condition;

  constructor(condition: Condition) {
    this.#condition = condition;
  }

  holds(headers: HeaderBlock | undefined, addresses: Addresses): boolean {
    return !this.#condition.holds(headers, addresses);
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

/** Matches the path without query and fragment. */
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

/** Selects an address of a connection, as text with port. */
export type AddressOf = (addresses: Addresses) => string;

export class AddressCondition implements Condition {
  readonly #range: IpRange;
  readonly #addressOf: AddressOf;

  constructor(range: IpRange, addressOf: AddressOf) {
    this.#range = range;
    this.#addressOf = addressOf;
  }

  /** Addresses of Unix sockets are in no range. */
  holds(_headers: HeaderBlock | undefined, addresses: Addresses): boolean {
    // Without the zone of a link-local address, which ranges do not have.
    const ip = parseIp(ipOfAddress(this.#addressOf(addresses)).replace(/%.*/, ''));
    return ip !== undefined && isInRange(this.#range, ip);
  }
}

/** The client's destination port is in [first, end). */
export class PortCondition implements Condition {
  readonly #first: number;
  readonly #end: number;

  constructor(first: number, end: number) {
    this.#first = first;
    this.#end = end;
  }

  holds(_headers: HeaderBlock | undefined, { downstreamLocalAddress: local }: Addresses): boolean {
    // As in Envoy, a Unix socket has no port, not even 0.
    if (ipOfAddress(local) === '') return false;
    const port = portOfAddress(local);
    return this.#first <= port && port < this.#end;
  }
}

/**
 * The client uses TLS and, with a rule, one of its certificate's URIs, DNS names or its subject matches. Without a certificate the
 * subject is empty.
 */
export class AuthenticatedCondition implements Condition {
  readonly #rule: StringRule | undefined;

  constructor(rule: StringRule | undefined) {
    this.#rule = rule;
  }

  holds(_headers: HeaderBlock | undefined, { downstream }: Addresses): boolean {
    const security = downstream?.security;
    const rule = this.#rule;
    if (security === undefined || rule === undefined) return security !== undefined;
    const { peer } = security;
    if (peer === undefined) return rule.matchesText('');
    const isMatch = (name: string) => rule.matchesText(name);
    return peer.uriSans.some(isMatch) || peer.dnsSans.some(isMatch) || isMatch(peer.subject);
  }
}

/** The server name that a listener filter has detected matches; '' without one. */
export class ServerNameCondition implements Condition {
  readonly #rule: StringRule;

  constructor(rule: StringRule) {
    this.#rule = rule;
  }

  holds(_headers: HeaderBlock | undefined, { downstream }: Addresses): boolean {
    return this.#rule.matchesText(downstream?.detected?.serverName ?? '');
  }
}

/** A value of dynamic metadata, or of the metadata of the route, matches. */
export class MetadataCondition implements Condition {
  readonly #rule: MetadataRule;
  readonly #isOfRoute: boolean;

  constructor(rule: MetadataRule, isOfRoute: boolean) {
    this.#rule = rule;
    this.#isOfRoute = isOfRoute;
  }

  holds(_headers: HeaderBlock | undefined, { dynamicMetadata, route }: Addresses): boolean {
    return this.#rule.matches(this.#isOfRoute ? configuredMetadata(route?.metadata) : dynamicMetadata);
  }
}

/** An object of the filter state matches. */
export class FilterStateCondition implements Condition {
  readonly #key: string;
  readonly #matches: (text: string) => boolean;

  /** `matches` gets the object as UTF-8 text. */
  constructor(key: string, matches: (text: string) => boolean) {
    this.#key = key;
    this.#matches = matches;
  }

  holds(_headers: HeaderBlock | undefined, { filterState }: Addresses): boolean {
    const object = filterState?.get(this.#key);
    return object !== undefined && this.#matches(Buffer.from(object.text, 'latin1').toString());
  }
}

/** The path without query matches a template. */
export class TemplateCondition implements Condition {
  readonly #pattern: RegExp;

  constructor(pattern: RegExp) {
    this.#pattern = pattern;
  }

  holds(headers: HeaderBlock | undefined): boolean {
    return headers !== undefined && this.#pattern.test(headers.pathText().replace(/[?#].*/s, ''));
  }
}
