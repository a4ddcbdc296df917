// Which timeout ends a request whose head does not come: all that hold for requests begin with its first byte.

import { ResponseFlag } from '../access-log/response-flags.js';
import type { CounterSlot } from '../stats/layout.js';
import { HttpStats } from '../stats/layouts/http.js';
import type { CodecError } from './codec.js';

export interface HeadTimeout {
  readonly ms: number;
  /** In http.<stat_prefix>. */
  readonly counter: CounterSlot;
  readonly flag: ResponseFlag;
  readonly answer: CodecError;
}

/** Milliseconds; 0 is none. */
export interface RequestLimits {
  readonly requestHeadersMs: number;
  readonly requestMs: number;
  readonly streamIdleMs: number;
  readonly maxStreamMs: number;
}

/** The one that ends first; undefined without any. */
export function firstHeadTimeout(limits: RequestLimits): HeadTimeout | undefined {
  const { requestHeadersMs, requestMs, streamIdleMs, maxStreamMs } = limits;
  const { at } = HttpStats;
  const all: readonly HeadTimeout[] = [
    {
      ms: requestHeadersMs,
      counter: at.downstream_rq_header_timeout,
      flag: ResponseFlag.None,
      answer: { status: 408, detail: 'request_header_timeout', body: 'request header timeout' },
    },
    {
      ms: requestMs,
      counter: at.downstream_rq_timeout,
      flag: ResponseFlag.None,
      answer: { status: 408, detail: 'request_overall_timeout', body: 'request timeout' },
    },
    {
      ms: streamIdleMs,
      counter: at.downstream_rq_idle_timeout,
      flag: ResponseFlag.StreamIdleTimeout,
      answer: { status: 408, detail: 'stream_idle_timeout', body: 'stream timeout' },
    },
    {
      ms: maxStreamMs,
      counter: at.downstream_rq_max_duration_reached,
      flag: ResponseFlag.DurationTimeout,
      answer: { status: 408, detail: 'max_duration_timeout', body: 'downstream duration timeout' },
    },
  ];
  const set = all.filter(({ ms }) => ms > 0);
  return set.sort((one, other) => one.ms - other.ms)[0];
}
