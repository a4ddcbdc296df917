// The ip_tagging filter of one request.

import type { IPTagging } from '../../../../config/generated/api.js';
import {
  type DynamicCounter,
  defineLayout,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  ipOfAddress,
  parseIp,
  type RangeTable,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';

export const TaggingStats = defineLayout({ no_hit: 'counter', total: 'counter' });

export interface TaggingRules {
  readonly table: RangeTable<readonly string[]>;
  readonly hits: ReadonlyMap<string, DynamicCounter>;
  readonly stats: Scope;
  readonly type: NonNullable<IPTagging['request_type']>;
  /** Undefined: x-envoy-ip-tags, to which tags are added. */
  readonly header: HeaderKey | undefined;
  readonly appends: boolean;
}

export class IpTaggingFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: TaggingRules;

  constructor(stream: StreamControl, rules: TaggingRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { appends, header = IP_TAGS, hits, stats, type } = this.#rules;
    const isInternal = headers.get(INTERNAL) === 'true';
    if (type !== 'BOTH' && isInternal !== (type === 'INTERNAL')) return HeadersStatus.Continue;
    const tags = this.#tags();
    stats.increment(TaggingStats.at.total);
    if (tags.length === 0) stats.increment(TaggingStats.at.no_hit);
    for (const tag of tags) hits.get(tag)!.increment();
    const replaces = this.#rules.header !== undefined && !appends;
    if (tags.length === 0) {
      if (!replaces || headers.find(header) < 0) return HeadersStatus.Continue;
      headers.remove(header);
    } else headers.set(header, [...(replaces ? [] : valuesOf(headers, header)), ...tags].join(','));
    // Routes can match the field.
    this.#stream.continueWithNewRoute();
    return HeadersStatus.Continue;
  }

  /** The tags of the client's address, without repetition. */
  #tags(): readonly string[] {
    const address = parseIp(ipOfAddress(this.#stream.info.downstreamRemoteAddress));
    const found: string[] = [];
    if (address === undefined) return found;
    this.#rules.table.findAll(address, (tags) => {
      for (const tag of tags) if (!found.includes(tag)) found.push(tag);
    });
    return found;
  }
}

/** Returns the values of all fields of that name that are not empty. */
function valuesOf(headers: HeaderBlock, key: HeaderKey): string[] {
  const values: string[] = [];
  for (let at = headers.find(key); at >= 0; at = headers.findNext(key, at)) values.push(headers.value(at));
  return values.filter((value) => value !== '');
}

const IP_TAGS = headerKey('x-envoy-ip-tags');
const INTERNAL = headerKey('x-envoy-internal');
