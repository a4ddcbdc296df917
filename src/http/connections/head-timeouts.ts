// Selects the timeout that ends a request with an incomplete head: all timeouts of requests begin with the first byte.

import type { CounterSlot } from '../../stats/layout.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { CodecError } from '../codec/streams.js';
import type { LocalReply } from '../filters/filter.js';
import { idleTooLong, LATE_HEAD, LATE_REQUEST, lastedTooLong } from '../streams/stream-answers.js';

export interface HeadTimeout {
  readonly ms: number;
  /** In http.<stat_prefix>. */
  readonly counter: CounterSlot;
  readonly answer: CodecError;
}

/** In milliseconds; 0: no timeout. */
export interface RequestLimits {
  readonly requestHeadersMs: number;
  readonly requestMs: number;
  readonly streamIdleMs: number;
  readonly maxStreamMs: number;
}

/** Returns the timeout that fires first; undefined without timeouts. */
export function firstHeadTimeout(limits: RequestLimits): HeadTimeout | undefined {
  const { requestHeadersMs, requestMs, streamIdleMs, maxStreamMs } = limits;
  const { at } = HttpStats;
  const all = [
    headTimeout(requestHeadersMs, at.downstream_rq_header_timeout, LATE_HEAD),
    headTimeout(requestMs, at.downstream_rq_timeout, LATE_REQUEST),
    headTimeout(streamIdleMs, at.downstream_rq_idle_timeout, idleTooLong(false)),
    headTimeout(maxStreamMs, at.downstream_rq_max_duration_reached, lastedTooLong(false, false)),
  ];
  const set = all.filter(({ ms }) => ms > 0);
  return set.sort((one, other) => one.ms - other.ms)[0];
}

function headTimeout(ms: number, counter: CounterSlot, reply: LocalReply): HeadTimeout {
  return { ms, counter, answer: refusal(reply) };
}

/** Returns the error for a request that gets `reply` before its head is complete. */
export function refusal({ body, details, flags, status }: LocalReply): CodecError {
  return { status, detail: details, body: String(body), flags };
}
