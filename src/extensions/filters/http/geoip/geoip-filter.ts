// The geoip filter of one request: sets header fields by the place of its client.

import {
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  ipOfAddress,
  parseIp,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { DatabaseLookUp } from './look-up.js';
import { GeoipStats } from './stats.js';

/** The common context of the filters of a chain on one worker. */
export interface GeoipRules {
  readonly lookUps: readonly DatabaseLookUp[];
  readonly stats: Scope;
  /** The field that has the address; undefined: none. */
  readonly header: HeaderKey | undefined;
  /** Addresses at the end of x-forwarded-for that are those of proxies; 0: it is not regarded. */
  readonly trustedHops: number;
}

const FORWARDED_FOR = headerKey('x-forwarded-for');

export class GeoipFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: GeoipRules;

  constructor(stream: StreamControl, rules: GeoipRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { lookUps, stats } = this.#rules;
    const { at } = GeoipStats;
    const ip = this.#named(headers) ?? parseIp(ipOfAddress(this.#stream.info.downstreamRemoteAddress));
    stats.increment(at.total);
    if (ip === undefined) {
      stats.increment(at.skipped);
      return HeadersStatus.Continue;
    }
    const done = new Set<HeaderKey>();
    for (const lookUp of lookUps) lookUp.apply(ip, headers, done);
    return HeadersStatus.Continue;
  }

  /** Returns the address that the request names in a field; undefined if it names none. */
  #named(headers: HeaderBlock): Uint8Array | undefined {
    const { header, trustedHops } = this.#rules;
    if (header !== undefined) {
      const index = headers.find(header);
      return index < 0 ? undefined : ip4Of(parseIp(headers.value(index)));
    }
    if (trustedHops === 0) return undefined;
    const addresses = (headers.get(FORWARDED_FOR) ?? '').split(',');
    return ip4Of(parseIp((addresses.at(-1 - trustedHops) ?? '').trim()));
  }
}

/** Returns an IPv4-mapped address as IPv4. */
function ip4Of(ip: Uint8Array | undefined): Uint8Array | undefined {
  if (ip?.length !== 16 || ip[10] !== 255 || ip[11] !== 255) return ip;
  return ip.subarray(0, 10).every((byte) => byte === 0) ? ip.subarray(12) : ip;
}
