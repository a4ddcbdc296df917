// rate_limits of routes and virtual hosts: the descriptors of requests for rate limit filters. A descriptor is a list of entries, each a
// key and a value. It is represented as one string, so that equal descriptors are equal strings.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { buildEach } from '../../../common/errors/errors.js';
import type {
  QueryParameterMatcher,
  RateLimit,
  RateLimit_Action,
  VhRateLimitsOptions,
} from '../../../config/generated/api.js';
import { ipOfAddress } from '../../../io/addresses/address.js';
import { byteText } from '../../headers/byte-text.js';
import { requestScheme } from '../../headers/edge/request-scheme.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';
import { compileHeaderRules, matchesAll } from '../matching/header-rule.js';
import { QueryRule } from '../matching/query-rule.js';

/** The parts of a request that descriptors are made from. */
export interface DescribedRequest {
  readonly headers: HeaderBlock;
  readonly info: StreamInfo;
  /** The cluster of its route. */
  readonly clusterName: string;
}

/** Makes one entry for a request. SKIPPED: no entry; undefined: the descriptor does not apply to the request. */
type Action = (request: DescribedRequest) => string | undefined;

const SKIPPED = '';

/** Returns one entry of a descriptor as text. */
export function entryText(key: string, value: string): string {
  return `${key}\n${value}\n`;
}

/** The rate limits of a route and its virtual host. */
export class RouteRateLimits {
  readonly #own: readonly CompiledLimit[];
  readonly #ofHost: readonly CompiledLimit[];
  readonly #includesHost: boolean;

  /** Returns undefined if neither has rate limits. */
  static of(
    own: CompiledLimits,
    ofHost: CompiledLimits,
    includesHost: boolean | undefined,
  ): RouteRateLimits | undefined {
    return own.length + ofHost.length === 0 ? undefined : new RouteRateLimits(own, ofHost, includesHost ?? false);
  }

  private constructor(own: CompiledLimits, ofHost: CompiledLimits, includesHost: boolean) {
    this.#own = own;
    this.#ofHost = ofHost;
    this.#includesHost = includesHost;
  }

  /** Returns the descriptors of a request at a stage. `ofHost`: when those of the virtual host are added to those of the route. */
  descriptors(stage: number, ofHost: VhRateLimitsOptions, request: DescribedRequest): string[] {
    const found: string[] = [];
    addDescriptors(this.#own, stage, request, found);
    const includesHost = this.#includesHost || ofHost === 'INCLUDE' || (ofHost !== 'IGNORE' && this.#own.length === 0);
    if (includesHost) addDescriptors(this.#ofHost, stage, request, found);
    return found;
  }
}

export type CompiledLimits = readonly CompiledLimit[];

export interface CompiledLimit {
  readonly stage: number;
  readonly actions: readonly Action[];
}

/** Throws BatonError for invalid rate limits; `where` is the path of the list. */
export function compileRateLimits(configs: readonly RateLimit[] | undefined, where: string): CompiledLimits {
  const compiled = buildEach(configs ?? [], ({ actions, disable_key, stage }, index) => ({
    stage: stage ?? 0,
    // As in Envoy, limits with disable_key are for external rate limit services, not for local rate limits.
    isForServices: (disable_key ?? '') !== '',
    actions: buildEach(actions ?? [], (action, at) => actionOf(action, `${where}[${index}].actions[${at}]`)),
  }));
  return compiled.filter(({ isForServices }) => !isForServices);
}

function addDescriptors(limits: CompiledLimits, stage: number, request: DescribedRequest, found: string[]): void {
  for (const { actions, stage: own } of limits) {
    const text = own === stage ? descriptorOf(actions, request) : undefined;
    if (text !== undefined && text !== '') found.push(text);
  }
}

function descriptorOf(actions: readonly Action[], request: DescribedRequest): string | undefined {
  let text = '';
  for (const action of actions) {
    const entry = action(request);
    if (entry === undefined) return undefined;
    text += entry;
  }
  return text;
}

function actionOf(config: RateLimit_Action, where: string): Action {
  const { generic_key, header_value_match, query_parameter_value_match, request_headers } = config;
  if (generic_key !== undefined) {
    const entry = textOf(generic_key.descriptor_key || 'generic_key', generic_key.descriptor_value);
    return () => entry;
  }
  if (request_headers !== undefined) {
    const { descriptor_key, header_name, skip_if_absent } = request_headers;
    const value = valueReader(header_name!, `${where}.request_headers.header_name`);
    return headerEntry(value, byteText(descriptor_key!), skip_if_absent ? SKIPPED : undefined);
  }
  if (header_value_match !== undefined) {
    const { descriptor_key, descriptor_value, expect_match = true, headers } = header_value_match;
    const rules = compileHeaderRules(headers, `${where}.header_value_match.headers`) ?? [];
    const entry = textOf(descriptor_key || 'header_match', descriptor_value);
    return (request) => (matchesAll(rules, request.headers) === expect_match ? entry : undefined);
  }
  if (query_parameter_value_match !== undefined) {
    const { descriptor_key, descriptor_value, expect_match = true, query_parameters } = query_parameter_value_match;
    const rules = queryRules(query_parameters, `${where}.query_parameter_value_match.query_parameters`);
    const entry = textOf(descriptor_key || 'query_match', descriptor_value);
    return (request) => (rules.every((rule) => rule.matches(request.headers)) === expect_match ? entry : undefined);
  }
  if (config.destination_cluster !== undefined) {
    return (request) => textOf('destination_cluster', request.clusterName);
  }
  // Only remote_address is left.
  return ({ info }) => {
    const address = ipOfAddress(info.downstreamRemoteAddress);
    return address === '' ? undefined : entryText('remote_address', address);
  };
}

function valueReader(name: string, where: string): HeaderReader {
  return name.toLowerCase() === ':scheme' ? requestScheme : headerReader(name, where);
}

function headerEntry(read: HeaderReader, key: string, absent: string | undefined): Action {
  return ({ headers }) => {
    const value = read(headers);
    return value === undefined ? absent : entryText(key, value);
  };
}

function queryRules(configs: readonly QueryParameterMatcher[] | undefined, where: string): QueryRule[] {
  return buildEach(configs ?? [], (config, index) => new QueryRule(config, `${where}[${index}]`, true));
}

/** Returns entryText() of configured texts, converted to one character per byte like header values. */
function textOf(key: string, value: string | undefined): string {
  return entryText(byteText(key), byteText(value ?? ''));
}
