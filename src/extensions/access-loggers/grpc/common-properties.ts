// The part that entries of HTTP and TCP logs have in common (envoy.data.accesslog.v3.AccessLogCommon).

import type { CommonGrpcAccessLogConfig } from '../../../config/generated/api.js';
import {
  writeAddress,
  writeDuration,
  writeMapMessage,
  writeNumber,
  writeObject,
  writeStruct,
  writeText,
  writeTimestamp,
} from '../../messages/wire.js';
import {
  type CompiledTag,
  compileCustomTags,
  downstreamBytes,
  type HeaderNeeds,
  headerKey,
  ProtobufWriter,
  ResponseFlag,
  type StreamInfo,
  UNSET,
  upstreamBytes,
} from '../../sdk.js';
import { writeCustomTags } from './custom-tags.js';
import { writeTlsProperties } from './tls-properties.js';

const REQUEST_ID = headerKey('x-request-id');

/** Fields of ResponseFlags by flag. Those that are missing here have none. */
const FLAG_FIELDS: readonly (readonly [flag: ResponseFlag, field: number])[] = [
  [ResponseFlag.FailedLocalHealthCheck, 1],
  [ResponseFlag.NoHealthyUpstream, 2],
  [ResponseFlag.UpstreamRequestTimeout, 3],
  [ResponseFlag.LocalReset, 4],
  [ResponseFlag.UpstreamRemoteReset, 5],
  [ResponseFlag.UpstreamConnectionFailure, 6],
  [ResponseFlag.UpstreamConnectionTermination, 7],
  [ResponseFlag.UpstreamOverflow, 8],
  [ResponseFlag.NoRouteFound, 9],
  [ResponseFlag.DelayInjected, 10],
  [ResponseFlag.FaultInjected, 11],
  [ResponseFlag.RateLimited, 12],
  [ResponseFlag.RateLimitServiceError, 14],
  [ResponseFlag.DownstreamConnectionTermination, 15],
  [ResponseFlag.UpstreamRetryLimitExceeded, 16],
  [ResponseFlag.StreamIdleTimeout, 17],
  [ResponseFlag.InvalidEnvoyRequestHeaders, 18],
  [ResponseFlag.DownstreamProtocolError, 19],
  [ResponseFlag.UpstreamMaxStreamDurationReached, 20],
  [ResponseFlag.ResponseFromCacheFilter, 21],
  [ResponseFlag.NoFilterConfigFound, 22],
  [ResponseFlag.DurationTimeout, 23],
  [ResponseFlag.UpstreamProtocolError, 24],
  [ResponseFlag.NoClusterFound, 25],
  [ResponseFlag.OverloadManager, 26],
  [ResponseFlag.DnsResolutionFailed, 27],
  [ResponseFlag.DownstreamRemoteReset, 28],
];
const UNAUTHORIZED = 13;
const EXTERNAL_SERVICE = 1;

/** Numbers of AccessLogType. */
const TYPES = {
  NotSet: 0,
  TcpUpstreamConnected: 1,
  TcpPeriodic: 2,
  TcpConnectionEnd: 3,
  DownstreamEnd: 6,
  UdpPeriodic: 12,
  UdpSessionEnd: 13,
  TcpConnectionStart: 14,
} as const;

const properties = new ProtobufWriter();
const flags = new ProtobufWriter();
const details = new ProtobufWriter();
const metadata = new ProtobufWriter();

export class CommonProperties {
  readonly #tags: readonly CompiledTag[];
  readonly #filterState: readonly string[];

  /** Adds what entries read to `needs`. Throws a BatonError with its place for an invalid custom tag. */
  constructor(config: CommonGrpcAccessLogConfig, needs: HeaderNeeds, where: string) {
    needs.request.add(REQUEST_ID.name);
    needs.wireBytes = true;
    this.#tags = compileCustomTags(config.custom_tags, needs, `${where}.custom_tags`);
    this.#filterState = config.filter_state_objects_to_log ?? [];
  }

  write(to: ProtobufWriter, field: number, info: StreamInfo): void {
    properties.clear();
    writeAddress(properties, 2, info.downstreamRemoteAddress);
    writeAddress(properties, 3, info.downstreamLocalAddress);
    writeTlsProperties(properties, 4, info);
    writeTimestamp(properties, 5, info.startRealtimeMs);
    writeSince(6, info, info.lastDownstreamRxMs);
    writeSince(7, info, info.firstUpstreamTxMs);
    writeSince(8, info, info.lastUpstreamTxMs);
    writeSince(9, info, info.firstUpstreamRxMs);
    writeSince(10, info, info.lastUpstreamRxMs);
    writeSince(11, info, info.firstDownstreamTxMs);
    writeSince(12, info, info.lastDownstreamTxMs);
    writeAddress(properties, 13, info.upstreamRemoteAddress || info.upstreamHost);
    writeAddress(properties, 14, info.upstreamLocalAddress);
    // As in Envoy, the cluster is that of the host.
    if (info.upstreamHost !== '') properties.string(15, info.upstreamCluster?.observabilityName ?? '');
    writeFlags(info.responseFlags);
    this.#writeMetadata(info);
    writeText(properties, 18, info.upstreamTransportFailureReason);
    if (info.routeName !== '') properties.string(19, info.routeName);
    writeAddress(properties, 20, info.downstreamDirectRemoteAddress);
    this.#writeFilterState(info);
    writeCustomTags(properties, 22, this.#tags, info);
    writeDuration(properties, 23, info.durationMs);
    writeNumber(properties, 24, info.attemptCount);
    writeText(properties, 25, info.connectionTerminationDetails);
    writeText(properties, 26, info.streamId || (info.requestHeaders?.get(REQUEST_ID) ?? ''));
    writeText(properties, 28, info.downstreamTransportFailureReason);
    writeNumber(properties, 29, downstreamBytes.sent(info));
    writeNumber(properties, 30, downstreamBytes.received(info));
    writeNumber(properties, 31, upstreamBytes.sent(info));
    writeNumber(properties, 32, upstreamBytes.received(info));
    writeNumber(properties, 33, TYPES[info.accessLogType]);
    to.message(field, properties);
  }

  #writeMetadata({ dynamicMetadata }: StreamInfo): void {
    if (dynamicMetadata === undefined) return;
    metadata.clear();
    for (const [namespace, struct] of dynamicMetadata.entries()) {
      details.clear();
      details.string(1, namespace);
      writeStruct(details, 2, struct);
      metadata.message(1, details);
    }
    properties.message(17, metadata);
  }

  #writeFilterState({ filterState }: StreamInfo): void {
    if (filterState === undefined) return;
    for (const key of this.#filterState) {
      const object = filterState.get(key);
      if (object === undefined) continue;
      details.clear();
      writeObject(details, 2, object);
      writeMapMessage(properties, 21, key, details);
    }
  }
}

/** Writes the time from the start of the stream to `atMs`, if that is set. */
function writeSince(field: number, info: StreamInfo, atMs: number): void {
  if (atMs !== UNSET) writeDuration(properties, field, Math.max(0, atMs - info.startMonotonicMs));
}

function writeFlags(bits: number): void {
  if (bits === 0) return;
  flags.clear();
  for (const [flag, field] of FLAG_FIELDS) if ((bits & flag) !== 0) flags.number(field, 1);
  if ((bits & ResponseFlag.UnauthorizedExternalService) !== 0) {
    details.clear();
    details.number(1, EXTERNAL_SERVICE);
    flags.message(UNAUTHORIZED, details);
  }
  properties.message(16, flags);
}
