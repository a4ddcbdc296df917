// How long streams of a route may last (max_stream_duration), which the client of a gRPC call may say where the route allows it.

import { durationMs } from '../../../common/time/duration.js';
import type { RouteAction_MaxStreamDuration } from '../../../config/generated/api.js';
import { grpcTimeoutMs, removeGrpcTimeout, setGrpcTimeout } from '../../headers/grpc-timeout.js';
import type { HeaderBlock } from '../../headers/header-block.js';

export class StreamDuration {
  /** 0: for ever; undefined: as the connection manager says. */
  readonly #ms: number | undefined;
  /** Most of what a client may say, 0 being no limit; undefined: it is not asked. */
  readonly #grpcMaxMs: number | undefined;
  readonly #grpcOffsetMs: number;

  constructor(config: RouteAction_MaxStreamDuration) {
    this.#ms = durationMs(config.max_stream_duration, undefined);
    this.#grpcMaxMs = durationMs(config.grpc_timeout_header_max, undefined);
    this.#grpcOffsetMs = durationMs(config.grpc_timeout_header_offset, 0);
  }

  /**
   * Milliseconds that this request may last; 0: for ever. As in Envoy the host of a gRPC call is told that time in place of what the
   * client has said.
   * @param managerMs as the connection manager says, 0 being for ever
   */
  apply(headers: HeaderBlock, isGrpc: boolean, managerMs: number): number {
    const asked = this.#grpcMaxMs === undefined ? undefined : grpcTimeoutMs(headers);
    const ms = asked === undefined ? (this.#ms ?? managerMs) : this.#granted(asked, this.#grpcMaxMs!);
    const isEndless = asked === undefined && ms === 0;
    if (isGrpc && !isEndless) setGrpcTimeout(headers, ms);
    // What would have ended the stream is off, and so is what the client thinks.
    else if (isGrpc && managerMs > 0) removeGrpcTimeout(headers);
    // Who has no time left gets none, and 0 would be for ever.
    return isEndless ? 0 : Math.max(1, ms);
  }

  #granted(asked: number, maxMs: number): number {
    const ms = maxMs > 0 ? Math.min(asked, maxMs) : asked;
    return Math.max(0, ms - this.#grpcOffsetMs);
  }
}
