// The grpc_stats filter of one stream: counts the messages of its bodies and the status of its response.

import { type CallStats, calledMethod, type MethodStats } from '../../../grpc/call-stats.js';
import { FrameScanner } from '../../../grpc/frame-scanner.js';
import {
  type Cluster,
  type ClusterReference,
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  isGrpcRequest,
  isGrpcResponse,
  type Memory,
  type StreamControl,
} from '../../../sdk.js';
import { MessageCounts } from './message-counts.js';

const GRPC_STATUS = headerKey('grpc-status');
/** The key of the object in the filter state. */
const STATE = 'envoy.filters.http.grpc_stats';

export interface GrpcStatsRules {
  readonly stats: CallStats;
  readonly emitsFilterState: boolean;
  /** Calls of every method are counted by its name. */
  readonly namesAllMethods: boolean;
  readonly replacesDots: boolean;
  /** The methods to count by name, as `service/method`. */
  readonly methods: ReadonlySet<string>;
  readonly recordsTimes: boolean;
}

export class GrpcStatsFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: GrpcStatsRules;
  #request: FrameScanner | undefined;
  #response: FrameScanner | undefined;
  #memory: Memory | undefined;
  /** Undefined: the call is not counted. */
  #stats: MethodStats | undefined;
  #counts: MessageCounts | undefined;

  constructor(stream: StreamControl, rules: GrpcStatsRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (!isGrpcRequest(headers)) return HeadersStatus.Continue;
    this.#memory = headers.memory;
    this.#request = new FrameScanner();
    const cluster = (this.#stream.route()?.cluster as ClusterReference | undefined)?.current;
    if (cluster !== undefined) this.#stats = this.#statsOf(cluster, headers);
    return HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number): DataStatus {
    const messages = this.#request === undefined ? 0 : count(this.#request, this.#memory!, offset, length);
    if (messages > 0) {
      this.#emitState();
      this.#stats?.requested(messages);
    }
    return DataStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    // Responses to other requests are only counted in the filter state.
    const isCounted = this.#stats !== undefined || this.#rules.emitsFilterState;
    if (isCounted && isGrpcResponse(headers, endStream)) {
      this.#memory = headers.memory;
      this.#response = new FrameScanner();
    }
    this.#countStatus(headers);
    if (endStream) this.#recordTime();
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number): DataStatus {
    const messages = this.#response === undefined ? 0 : count(this.#response, this.#memory!, offset, length);
    if (messages > 0) {
      this.#emitState();
      this.#stats?.responded(messages);
    }
    return DataStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    this.#countStatus(trailers);
    this.#recordTime();
    return HeadersStatus.Continue;
  }

  #statsOf(cluster: Cluster, headers: HeaderBlock): MethodStats | undefined {
    const { methods, namesAllMethods, replacesDots, stats } = this.#rules;
    const called = calledMethod(headers);
    if (called === undefined) return undefined;
    const { method, service } = called;
    if (namesAllMethods) return stats.of(cluster, `${replacesDots ? service.replaceAll('.', '_') : service}.${method}`);
    return stats.of(cluster, methods.has(`${service}/${method}`) ? `${service}.${method}` : '');
  }

  #countStatus(headers: HeaderBlock): void {
    const status = this.#stats === undefined ? undefined : headers.get(GRPC_STATUS);
    if (status !== undefined) this.#stats!.ended(status);
  }

  #recordTime(): void {
    if (this.#stats === undefined || !this.#rules.recordsTimes) return;
    const { lastUpstreamRxMs, lastUpstreamTxMs } = this.#stream.info;
    if (lastUpstreamTxMs < 0 || lastUpstreamRxMs < lastUpstreamTxMs) return;
    this.#stats.took(Math.floor(lastUpstreamRxMs - lastUpstreamTxMs));
  }

  #emitState(): void {
    if (!this.#rules.emitsFilterState) return;
    if (this.#counts === undefined) {
      this.#counts = new MessageCounts();
      this.#stream.info.ownFilterState().set(STATE, this.#counts);
    }
    this.#counts.requests = this.#request?.count ?? 0;
    this.#counts.responses = this.#response?.count ?? 0;
  }
}

/** Returns how many frames begin in a piece of a body. */
function count(frames: FrameScanner, { bytes }: Memory, offset: number, length: number): number {
  const before = frames.count;
  const end = offset + length;
  for (let at = offset; at < end; ) at = frames.next(bytes, at, end);
  return frames.count - before;
}
