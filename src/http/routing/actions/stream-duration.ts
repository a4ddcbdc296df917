// max_stream_duration of a route, which gRPC clients may set by grpc-timeout if the route allows it.

import { durationMs } from '../../../common/time/duration.js';
import type { RouteAction_MaxStreamDuration } from '../../../config/generated/api.js';
import { grpcTimeoutMs, removeGrpcTimeout, setGrpcTimeout } from '../../headers/grpc-timeout.js';
import type { HeaderBlock } from '../../headers/header-block.js';

export class StreamDuration {
  /** 0: no limit; undefined: the connection manager's setting. */
  readonly #ms: number | undefined;
  /** Maximum for the client's grpc-timeout, 0 for no limit; undefined: grpc-timeout is ignored. */
  readonly #grpcMaxMs: number | undefined;
  readonly #grpcOffsetMs: number;

  constructor(config: RouteAction_MaxStreamDuration) {
    this.#ms = durationMs(config.max_stream_duration, undefined);
    this.#grpcMaxMs = durationMs(config.grpc_timeout_header_max, undefined);
    this.#grpcOffsetMs = durationMs(config.grpc_timeout_header_offset, 0);
  }

  /**
   * Returns how many milliseconds this request may last; 0: no limit. As in Envoy, the grpc-timeout that the host receives is replaced with
   * that time.
   * @param managerMs the connection manager's setting; 0: no limit
   */
  apply(headers: HeaderBlock, isGrpc: boolean, managerMs: number): number {
    const asked = this.#grpcMaxMs === undefined ? undefined : grpcTimeoutMs(headers);
    const ms = asked === undefined ? (this.#ms ?? managerMs) : this.#granted(asked, this.#grpcMaxMs!);
    const isEndless = asked === undefined && ms === 0;
    if (isGrpc && !isEndless) setGrpcTimeout(headers, ms);
    // The route disables the connection manager's limit, and so the client's grpc-timeout too.
    else if (isGrpc && managerMs > 0) removeGrpcTimeout(headers);
    // No time left: 0 would mean no limit.
    return isEndless ? 0 : Math.max(1, ms);
  }

  #granted(asked: number, maxMs: number): number {
    const ms = maxMs > 0 ? Math.min(asked, maxMs) : asked;
    return Math.max(0, ms - this.#grpcOffsetMs);
  }
}
