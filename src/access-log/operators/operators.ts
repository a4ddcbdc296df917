// The table of format operators: name, parameter and implementation.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { buildEach } from '../../common/errors/errors.js';
import { didYouMean } from '../../common/text/suggest.js';
import { longFlags, shortFlags } from '../stream/response-flags.js';
import { PROTOCOL_NAMES } from '../stream/stream-info.js';
import { downstreamBytes, upstreamBytes } from './bytes-operators.js';
import { CoalesceOperator, parseCoalesce } from './coalesce-operator.js';
import { between, commonDuration } from './duration-operators.js';
import {
  address,
  closeTypeText,
  type Entry,
  endpointId,
  environment,
  expression,
  FlagsOperator,
  filterState,
  header,
  headersBytes,
  metadata,
  number,
  type OperatorCall,
  oneWord,
  responseCodeDetails,
  streamId,
  text,
  time,
  wireBytes,
  withParameter,
} from './entries.js';
import { operatorError } from './format-error.js';
import { grpcStatusOperator } from './grpc-status-operator.js';
import {
  AttemptedConnectionsOperator,
  AttemptedHostsOperator,
  address as hostAddress,
  addressWithoutPort as hostAddressWithoutPort,
  name as hostName,
  nameWithoutPort as hostNameWithoutPort,
  ofLastHost,
} from './host-operators.js';
import { metadataOperator } from './metadata-operator.js';
import { type HeaderNeeds, Literal, type Operator } from './operator.js';
import { pathOperator, queryParamOperator, queryParamsOperator } from './path-operators.js';
import { type ReplyBody, ReplyBodyOperator } from './reply-body-operator.js';
import { serverNameOperator } from './server-name-operator.js';
import { TLS_OPERATORS } from './tls-operators.js';
import { isUnimplementedOperator } from './unimplemented-operators.js';

/** Creates the operator for a call and adds the headers that it reads to `needs`. Throws a BatonError for an invalid call. */
export function createOperator(call: OperatorCall, needs: HeaderNeeds): Operator {
  const entry = call.name === LOCAL_REPLY_BODY ? REPLY_BODY : OPERATORS.get(call.name);
  if (entry === undefined) throw operatorError(missing(call.name));
  if (entry.parameter === 'none' && call.parameter !== undefined)
    throw operatorError(`operator %${call.name}% takes no parameter`);
  if (entry.parameter === 'required' && (call.parameter ?? '') === '')
    throw operatorError(`operator %${call.name}% needs a parameter`);
  if (!entry.length && call.maxLength !== undefined) throw operatorError(`operator %${call.name}% takes no length`);
  return entry.create(call, needs);
}

function missing(name: string): string {
  return isUnimplementedOperator(name)
    ? `operator %${name}% is not implemented in Baton`
    : `unknown operator %${name}%${didYouMean(name, OPERATORS.keys())}`;
}

/** Returns the names of the operators that are available in every format. */
export function operatorNames(): string[] {
  return [...OPERATORS.keys()];
}

const LOCAL_REPLY_BODY = 'LOCAL_REPLY_BODY';
/** Formats of other places do not have the text. */
const NO_REPLY_BODY: ReplyBody = { text: '' };
const REPLY_BODY: Entry = {
  parameter: 'none',
  length: false,
  create({ replyBody }) {
    return new ReplyBodyOperator(replyBody ?? NO_REPLY_BODY);
  },
};

const OPERATORS: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  ['START_TIME', time((info) => info.startRealtimeMs, 'utc')],
  ['START_TIME_LOCAL', time((info) => info.startRealtimeMs, 'local')],
  ['EMIT_TIME', time(() => Date.now(), 'utc')],
  ['EMIT_TIME_LOCAL', time(() => Date.now(), 'local')],
  ['REQ', header('request')],
  ['REQUEST_HEADER', header('request')],
  ['REQ_WITHOUT_QUERY', header('request', true)],
  ['RESP', header('response')],
  ['RESPONSE_HEADER', header('response')],
  ['TRAILER', header('trailers')],
  ['RESPONSE_TRAILER', header('trailers')],
  // As in Envoy: the same head, which a stream of this build always has.
  ['STREAM_INFO_REQ', header('request')],
  [
    'PATH',
    withParameter('optional', true, ({ parameter = '', maxLength }, needs) =>
      pathOperator(parameter, maxLength, needs),
    ),
  ],
  [
    'QUERY_PARAM',
    withParameter('required', true, (call, needs) => queryParamOperator(call.parameter!, call.maxLength, needs)),
  ],
  [
    'QUERY_PARAMS',
    withParameter('optional', true, ({ parameter = '', maxLength }, needs) =>
      queryParamsOperator(parameter, maxLength, needs),
    ),
  ],
  ['COALESCE', withParameter('required', true, coalesce)],
  ['PROTOCOL', text((info) => PROTOCOL_NAMES[info.protocol]!)],
  ['UPSTREAM_PROTOCOL', text((info) => PROTOCOL_NAMES[info.upstreamProtocol]!)],
  ['RESPONSE_CODE', number((info) => info.responseCode)],
  ['RESPONSE_CODE_DETAILS', responseCodeDetails()],
  ['RESPONSE_FLAGS', { parameter: 'none', length: false, create: () => new FlagsOperator(shortFlags) }],
  ['RESPONSE_FLAGS_LONG', { parameter: 'none', length: false, create: () => new FlagsOperator(longFlags) }],
  ['BYTES_RECEIVED', number((info) => info.bytesReceived)],
  ['BYTES_SENT', number((info) => info.bytesSent)],
  ['DURATION', number((info) => info.durationMs)],
  ['REQUEST_DURATION', number((info) => between(info.startMonotonicMs, info.lastDownstreamRxMs))],
  ['REQUEST_TX_DURATION', number((info) => between(info.startMonotonicMs, info.lastUpstreamTxMs))],
  ['RESPONSE_DURATION', number((info) => between(info.startMonotonicMs, info.firstUpstreamRxMs))],
  ['RESPONSE_TX_DURATION', number((info) => between(info.firstUpstreamRxMs, info.lastDownstreamTxMs))],
  ['COMMON_DURATION', withParameter('required', false, ({ parameter }) => commonDuration(parameter!))],
  ['UPSTREAM_CONNECTION_POOL_READY_DURATION', number((info) => between(info.tryStartMs, info.poolReadyMs))],
  // Never in HTTP/1.1 and TCP.
  ['ROUNDTRIP_DURATION', text(() => '')],
  ['DOWNSTREAM_HANDSHAKE_DURATION', text(() => '')],
  ['BYTES_RETRANSMITTED', number(() => 0)],
  ['PACKETS_RETRANSMITTED', number(() => 0)],
  ...wireBytes('DOWNSTREAM', downstreamBytes),
  ...wireBytes('UPSTREAM', upstreamBytes),
  ['REQUEST_HEADERS_BYTES', headersBytes('request')],
  ['RESPONSE_HEADERS_BYTES', headersBytes('response')],
  ['RESPONSE_TRAILERS_BYTES', headersBytes('trailers')],
  [
    'GRPC_STATUS',
    withParameter('optional', false, ({ parameter = '' }, needs) => grpcStatusOperator(parameter, needs)),
  ],
  ['GRPC_STATUS_NUMBER', withParameter('none', false, (_call, needs) => grpcStatusOperator('NUMBER', needs))],
  ['UPSTREAM_HOST', text((info) => info.upstreamHost)],
  ['UPSTREAM_HOST_NAME', text(ofLastHost(hostName))],
  ['UPSTREAM_HOST_NAME_WITHOUT_PORT', text(ofLastHost(hostNameWithoutPort))],
  ['UPSTREAM_HOSTS_ATTEMPTED', withParameter('none', false, () => new AttemptedHostsOperator(hostAddress))],
  [
    'UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT',
    withParameter('none', false, () => new AttemptedHostsOperator(hostAddressWithoutPort)),
  ],
  ['UPSTREAM_HOST_NAMES_ATTEMPTED', withParameter('none', false, () => new AttemptedHostsOperator(hostName))],
  [
    'UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT',
    withParameter('none', false, () => new AttemptedHostsOperator(hostNameWithoutPort)),
  ],
  ['UPSTREAM_CONNECTION_ID', number((info) => info.upstreamConnectionId)],
  ['UPSTREAM_CONNECTION_IDS_ATTEMPTED', withParameter('none', false, () => new AttemptedConnectionsOperator())],
  ['UPSTREAM_CLUSTER', text((info) => info.upstreamCluster?.observabilityName ?? '')],
  ['UPSTREAM_CLUSTER_RAW', text((info) => info.upstreamCluster?.name ?? '')],
  ...address('UPSTREAM_LOCAL', (info) => info.upstreamLocalAddress),
  ...address('UPSTREAM_REMOTE', (info) => info.upstreamRemoteAddress),
  ['UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID', endpointId((info) => info.upstreamRemoteAddress)],
  ['UPSTREAM_REQUEST_ATTEMPT_COUNT', number((info) => info.attemptCount)],
  ['UPSTREAM_TRANSPORT_FAILURE_REASON', text((info) => oneWord(info.upstreamTransportFailureReason))],
  ['DOWNSTREAM_TRANSPORT_FAILURE_REASON', text((info) => oneWord(info.downstreamTransportFailureReason))],
  [
    'UPSTREAM_DETECTED_CLOSE_TYPE',
    text((info) => (info.host === undefined ? '' : closeTypeText(info.upstreamCloseType))),
  ],
  ['DOWNSTREAM_DETECTED_CLOSE_TYPE', text((info) => closeTypeText(info.downstreamCloseType))],
  ['UPSTREAM_LOCAL_CLOSE_REASON', text((info) => info.upstreamLocalCloseReason)],
  ['DOWNSTREAM_LOCAL_CLOSE_REASON', text((info) => info.downstreamLocalCloseReason)],
  ...address('DOWNSTREAM_REMOTE', (info) => info.downstreamRemoteAddress),
  ...address('DOWNSTREAM_DIRECT_REMOTE', (info) => info.downstreamDirectRemoteAddress),
  ...address('DOWNSTREAM_LOCAL', (info) => info.downstreamLocalAddress),
  ...address('DOWNSTREAM_DIRECT_LOCAL', (info) => info.downstreamDirectLocalAddress),
  ['DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID', endpointId((info) => info.downstreamLocalAddress)],
  ['DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID', endpointId((info) => info.downstreamDirectLocalAddress)],
  ['CONNECTION_ID', number((info) => info.connectionId)],
  ['CONNECTION_TERMINATION_DETAILS', text((info) => info.connectionTerminationDetails)],
  [
    'REQUESTED_SERVER_NAME',
    withParameter('optional', false, ({ parameter = '', isInHeader }, needs) =>
      serverNameOperator(parameter, isInHeader, needs),
    ),
  ],
  ...TLS_OPERATORS,
  ['ROUTE_NAME', text((info) => info.routeName)],
  ['VIRTUAL_HOST_NAME', text((info) => info.virtualHostName)],
  ['VIRTUAL_CLUSTER_NAME', text((info) => info.virtualClusterName)],
  ['FILTER_CHAIN_NAME', text((info) => info.chain?.filterChainName ?? '')],
  ['ACCESS_LOG_TYPE', text((info) => info.accessLogType)],
  ['METADATA', withParameter('required', true, ({ parameter, maxLength }) => metadataOperator(parameter!, maxLength))],
  ['DYNAMIC_METADATA', metadata('DYNAMIC', true)],
  ['CLUSTER_METADATA', metadata('CLUSTER', true)],
  ['UPSTREAM_METADATA', metadata('UPSTREAM_HOST', false)],
  ['CEL', expression(false)],
  ['TYPED_CEL', expression(true)],
  ['FILTER_STATE', filterState(false)],
  ['UPSTREAM_FILTER_STATE', filterState(true)],
  // No filter of this build sets flags.
  ['CUSTOM_FLAGS', withParameter('none', false, () => new Literal(''))],
  ['TRACE_ID', text((info) => info.span?.traceId ?? '')],
  ['SPAN_ID', text((info) => info.span?.spanId ?? '')],
  ['UNIQUE_ID', text(() => randomUUID())],
  ['STREAM_ID', streamId()],
  // Of DNS filters.
  ['QUERY_NAME', text(({ dns }) => (dns?.isParsed ? dns.name : ''))],
  ['QUERY_TYPE', text(({ dns }) => (dns?.isParsed ? String(dns.type) : ''))],
  ['QUERY_CLASS', text(({ dns }) => (dns?.isParsed ? '1' : ''))],
  ['ANSWER_COUNT', text(({ dns }) => (dns === undefined ? '' : String(dns.answers)))],
  ['PARSE_STATUS', text(({ dns }) => (dns === undefined ? '' : String(dns.isParsed)))],
  ['HOSTNAME', { parameter: 'none', length: false, create: () => new Literal(hostname() || '-') }],
  ['ENVIRONMENT', environment()],
]);

/** Creates the operators in `operators` and adds what they read to `needs`. */
function coalesce({ parameter, maxLength, ...rest }: OperatorCall, needs: HeaderNeeds): Operator {
  const operators = buildEach(parseCoalesce(parameter!), (call) => createOperator({ ...rest, ...call }, needs));
  return new CoalesceOperator(operators, maxLength);
}
