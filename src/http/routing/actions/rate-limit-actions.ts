// The actions of rate_limits: each makes one entry of a descriptor, a key and a value, from a request.

import {
  expressionOfExpr,
  expressionOfText,
  type StreamExpression,
} from '../../../access-log/attributes/stream-expression.js';
import { compileFormat } from '../../../access-log/formats/format.js';
import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { celText } from '../../../cel/output.js';
import { BatonError, buildEach, messageOf } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import type {
  Any,
  Descriptor,
  Metadata,
  QueryParameterMatcher,
  RateLimit_Action,
  RateLimit_Action_MetaData,
  RateLimit_Action_RemoteAddressMatch,
} from '../../../config/generated/api.js';
import { ipOfAddress, parseIp } from '../../../io/addresses/address.js';
import { type IpRange, ipRange, isInRange, rangeText } from '../../../io/addresses/ip-range.js';
import { requestScheme } from '../../headers/edge/request-scheme.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { decodedParameter } from '../matching/decoded-query.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';
import { compileHeaderRules, matchesAll } from '../matching/header-rule.js';
import { QueryRule } from '../matching/query-rule.js';
import { configuredMetadata, type MetadataSource, valueAt } from '../matching/value-rule.js';

/** The parts of a request that descriptors are made from. */
export interface DescribedRequest {
  readonly headers: HeaderBlock;
  readonly info: StreamInfo;
  /** The cluster of its route. */
  readonly clusterName: string;
  readonly clusterMetadata: Metadata | undefined;
  readonly routeMetadata: Metadata | undefined;
  /** The cluster that this server belongs to (`--service-cluster`). */
  readonly localCluster: string;
}

/**
 * Adds a key and a value to `entries`, or nothing. Returns false if the descriptor does not apply to the request. Texts have one
 * character per byte.
 */
export type Action = (request: DescribedRequest, entries: string[]) => boolean;

/** Compiles an action. Throws a BatonError with its place. */
export function compileAction(config: RateLimit_Action, where: string): Action {
  const { generic_key, header_value_match, masked_remote_address, query_parameter_value_match } = config;
  if (generic_key !== undefined)
    return fixed(generic_key.descriptor_key || 'generic_key', generic_key.descriptor_value);
  if (config.source_cluster !== undefined)
    return ({ localCluster }, entries) => added(entries, 'source_cluster', byteText(localCluster));
  if (config.destination_cluster !== undefined)
    return ({ clusterName }, entries) => added(entries, 'destination_cluster', byteText(clusterName));
  if (config.request_headers !== undefined) {
    const { descriptor_key: key, header_name: name, skip_if_absent: isOptional } = config.request_headers;
    const read = valueReader(name!, `${where}.request_headers.header_name`);
    return optional(key!, isOptional, ({ headers }) => read(headers));
  }
  if (config.query_parameters !== undefined) {
    const { descriptor_key: key, query_parameter_name: name, skip_if_absent: isOptional } = config.query_parameters;
    const parameter = byteText(name!);
    return optional(key!, isOptional, ({ headers }) => decodedParameter(headers.pathText(), parameter));
  }
  if (header_value_match !== undefined) {
    const { descriptor_key, descriptor_value, expect_match = true, headers } = header_value_match;
    const rules = compileHeaderRules(headers, `${where}.header_value_match.headers`) ?? [];
    const add = fixed(descriptor_key || 'header_match', descriptor_value);
    return (request, entries) => matchesAll(rules, request.headers) === expect_match && add(request, entries);
  }
  if (query_parameter_value_match !== undefined) {
    const { descriptor_key, descriptor_value, expect_match = true, query_parameters } = query_parameter_value_match;
    const rules = queryRules(query_parameters, `${where}.query_parameter_value_match.query_parameters`);
    const add = fixed(descriptor_key || 'query_match', descriptor_value);
    return (request, entries) =>
      rules.every((rule) => rule.matches(request.headers)) === expect_match && add(request, entries);
  }
  if (config.metadata !== undefined) return metadataAction(config.metadata);
  if (config.dynamic_metadata !== undefined) return metadataAction({ ...config.dynamic_metadata, source: 'DYNAMIC' });
  if (config.extension !== undefined)
    return expressionAction(config.extension.typed_config!, `${where}.extension.typed_config`);
  if (config.remote_address_match !== undefined)
    return addressMatch(config.remote_address_match, `${where}.remote_address_match`);
  if (masked_remote_address !== undefined) {
    const { v4_prefix_mask_len: v4 = 32, v6_prefix_mask_len: v6 = 128 } = masked_remote_address;
    return clientAction('masked_remote_address', (ip) => rangeText(ipRange(ip, ip.includes(':') ? v6 : v4)!));
  }
  // Only remote_address is left.
  return clientAction('remote_address', (ip) => ip);
}

function added(entries: string[], key: string, value: string): true {
  entries.push(key, value);
  return true;
}

/** An entry of configured texts. */
function fixed(key: string, value: string | undefined): Action {
  const [keyText, valueText] = [byteText(key), byteText(value ?? '')];
  return (_request, entries) => added(entries, keyText, valueText);
}

/** An entry with a value that may be absent. `isOptional`: the descriptor then lacks the entry; otherwise it does not apply. */
function optional(
  key: string,
  isOptional: boolean | undefined,
  read: (request: DescribedRequest) => string | undefined,
): Action {
  const text = byteText(key);
  return (request, entries) => {
    const value = read(request);
    return value === undefined ? isOptional === true : added(entries, text, value);
  };
}

/** An entry of the client's IP address. A client without one gets no descriptor. */
function clientAction(key: string, textOf: (ip: string) => string): Action {
  return ({ info }, entries) => {
    const ip = ipOfAddress(info.downstreamRemoteAddress);
    return ip !== '' && added(entries, key, textOf(ip));
  };
}

/** As in Envoy, only texts are values; the default stands for an empty one too. */
function metadataAction(config: RateLimit_Action_MetaData): Action {
  const { default_value: otherwise, descriptor_key: key, metadata_key: place, skip_if_absent: isOptional } = config;
  const path = (place?.path ?? []).map(({ key: name = '' }) => name);
  const sourceOf = SOURCES[config.source ?? 'DYNAMIC'];
  const fallback = otherwise ? byteText(otherwise) : undefined;
  return optional(key!, isOptional, (request) => {
    const struct = sourceOf(request)?.get(place?.key ?? '');
    const value = struct && valueAt(struct, path);
    return typeof value === 'string' && value !== '' ? byteText(value) : fallback;
  });
}

/** An entry with the value of an expression; an error counts as missing. */
function expressionAction(any: Any, where: string): Action {
  const { descriptor_key: key, parsed, skip_if_error: isOptional, text } = any as unknown as Descriptor;
  const compile = text === undefined ? () => expressionOfExpr(parsed) : () => expressionOfText(text);
  const at = `${where}.${text === undefined ? 'parsed' : 'text'}`;
  if (text === undefined && parsed === undefined)
    throw new BatonError('CONFIG_INVALID', 'the descriptor needs an expression', { where });
  const { evaluate } = atExpression(at, compile);
  return optional(key!, isOptional, ({ info }) => {
    const value = evaluate(info);
    return value === undefined ? undefined : celText(value);
  });
}

function atExpression(where: string, compile: () => StreamExpression): StreamExpression {
  try {
    return compile();
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}

const SOURCES: { readonly [source: string]: (request: DescribedRequest) => MetadataSource | undefined } = {
  DYNAMIC: ({ info }) => info.dynamicMetadata,
  ROUTE_ENTRY: ({ routeMetadata }) => configuredMetadata(routeMetadata),
  CLUSTER_ENTRY: ({ clusterMetadata }) => configuredMetadata(clusterMetadata),
};

function addressMatch(config: RateLimit_Action_RemoteAddressMatch, where: string): Action {
  const { invert_match: isInverted = false, ranges: configured = [] } = config.address_matcher ?? {};
  const ranges = buildEach(configured, ({ address_prefix: prefix = '', prefix_len: bits = 0 }, index): IpRange => {
    const range = ipRange(prefix, bits);
    if (range !== undefined) return range;
    const at = `${where}.address_matcher.ranges[${index}].address_prefix`;
    throw new BatonError('CONFIG_INVALID', `'${prefix}' is not an IP address`, { where: at });
  });
  const value = formatted(config.descriptor_value!, `${where}.descriptor_value`);
  const key = byteText(config.descriptor_key || 'remote_address_match');
  const fallback = byteText(config.default_value ?? '');
  return ({ info }, entries) => {
    const ip = parseIp(ipOfAddress(info.downstreamRemoteAddress));
    if (ip === undefined || ranges.some((range) => isInRange(range, ip)) === isInverted) return false;
    const text = value.text(info) || fallback;
    return text !== '' && added(entries, key, text);
  };
}

/** Compiles a format whose missing values are empty. */
function formatted(format: string, where: string): ReturnType<typeof compileFormat> {
  try {
    return compileFormat(format, { omitEmptyValues: true });
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}

function valueReader(name: string, where: string): HeaderReader {
  return name.toLowerCase() === ':scheme' ? requestScheme : headerReader(name, where);
}

function queryRules(configs: readonly QueryParameterMatcher[] | undefined, where: string): QueryRule[] {
  return buildEach(configs ?? [], (config, index) => new QueryRule(config, `${where}[${index}]`, true));
}
