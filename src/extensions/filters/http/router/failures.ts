// The ways in which tries fail, each with its text, response flag, status and kind of retry.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import { ResetReason } from '../../../../http/codec/streams.js';
import { RetryReset } from '../../../../http/routing/retries/retry-state.js';
import { PoolFailure } from '../../../../upstream/pool-failure.js';

/** The reason why a try ended without a response. */
export interface Failure {
  /** The text in "reset reason: …". */
  readonly reason: string;
  /** The transport's error, or ''. */
  readonly transport: string;
  readonly flag: ResponseFlag;
  readonly status: number;
  readonly retry: RetryReset;
}

/** Returns the failure of a try that got no connection. */
export function poolFailure(failure: PoolFailure, transport: string): Failure {
  switch (failure) {
    case PoolFailure.Overflow:
    case PoolFailure.PendingOverflow:
      return failed('overflow', '', ResponseFlag.UpstreamOverflow, RetryReset.Overflow);
    case PoolFailure.ConnectTimeout:
      return failed('connection timeout', '', ResponseFlag.UpstreamConnectionFailure, RetryReset.ConnectFailure);
    case PoolFailure.ConnectFailed:
    case PoolFailure.BindFailed: {
      const side = failure === PoolFailure.BindFailed ? 'local' : 'remote';
      const flag = ResponseFlag.UpstreamConnectionFailure;
      return failed(`${side} connection failure`, transport, flag, RetryReset.ConnectFailure);
    }
  }
}

/** Returns the failure of a try whose connection or stream ended before a response head. */
export function resetFailure(reason: ResetReason): Failure {
  switch (reason) {
    case ResetReason.ConnectionTermination:
      return failed('connection termination', '', ResponseFlag.UpstreamConnectionTermination, RetryReset.Reset);
    case ResetReason.ProtocolError:
      return { ...failed('protocol error', '', ResponseFlag.UpstreamProtocolError, RetryReset.Reset), status: 502 };
    case ResetReason.RemoteReset:
      return failed('remote reset', '', ResponseFlag.UpstreamRemoteReset, RetryReset.Reset);
    case ResetReason.RefusedStream: {
      const flag = ResponseFlag.UpstreamRemoteReset;
      return failed('remote refused stream reset', '', flag, RetryReset.RefusedStream);
    }
    case ResetReason.ConnectError:
      return failed('remote error with CONNECT request', '', ResponseFlag.UpstreamRemoteReset, RetryReset.Reset);
    case ResetReason.InternalError:
    case ResetReason.LocalReset:
    case ResetReason.LocalClose:
      return failed('local reset', '', ResponseFlag.LocalReset, RetryReset.Local);
  }
}

function failed(reason: string, transport: string, flag: ResponseFlag, retry: RetryReset): Failure {
  return { reason, transport, flag, status: 503, retry };
}
