// The adaptive_concurrency filter of one request: rejects it if too many are in flight, or measures its latency.

import { DataStatus, type HeaderBlock, HeadersStatus, type HttpFilter, type StreamControl } from '../../../sdk.js';
import type { ConcurrencyLimit } from './concurrency-limit.js';

export class AdaptiveConcurrencyFilter implements HttpFilter {
  private readonly stream: StreamControl;
  private readonly limit: ConcurrencyLimit;
  private readonly status: number;
  private startMs = 0;
  /** The request counts as one in flight. */
  private isCounted = false;

  /** `status`: of the answer to rejected requests. */
  constructor(stream: StreamControl, limit: ConcurrencyLimit, status: number) {
    this.stream = stream;
    this.limit = limit;
    this.status = status;
  }

  decodeHeaders(): HeadersStatus {
    if (this.stream.info.isHealthCheck) return HeadersStatus.Continue;
    if (!this.limit.tryBegin()) {
      const body = 'reached concurrency limit';
      this.stream.sendLocalReply({ status: this.status, body, details: 'reached_concurrency_limit', flags: 0 });
      return HeadersStatus.StopIteration;
    }
    this.isCounted = true;
    this.startMs = this.limit.clock.monotonicMs;
    return HeadersStatus.Continue;
  }

  encodeHeaders(_headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (endStream) this.end(this.startMs);
    return HeadersStatus.Continue;
  }

  encodeData(_offset: number, _length: number, endStream: boolean): DataStatus {
    if (endStream) this.end(this.startMs);
    return DataStatus.Continue;
  }

  encodeTrailers(): HeadersStatus {
    this.end(this.startMs);
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.end(undefined);
  }

  private end(startMs: number | undefined): void {
    if (!this.isCounted) return;
    this.isCounted = false;
    this.limit.end(startMs);
  }
}
