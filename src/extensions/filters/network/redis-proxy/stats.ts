// Stats of a Redis proxy, and of each of its commands.

import { defineLayout, type Scope } from '../../../sdk.js';

/** Scope `redis.<stat_prefix>.` */
export const RedisStats = defineLayout({
  downstream_cx_active: 'gauge',
  downstream_cx_drain_close: 'counter',
  downstream_cx_protocol_error: 'counter',
  downstream_cx_rx_bytes_buffered: 'gauge',
  downstream_cx_rx_bytes_total: 'counter',
  downstream_cx_total: 'counter',
  downstream_cx_tx_bytes_buffered: 'gauge',
  downstream_cx_tx_bytes_total: 'counter',
  downstream_rq_active: 'gauge',
  downstream_rq_noproto: 'counter',
  downstream_rq_total: 'counter',
});

/** Scope `redis.<stat_prefix>.splitter.` */
export const SplitterStats = defineLayout({ invalid_request: 'counter', unsupported_command: 'counter' });

const COMMAND = {
  total: 'counter',
  success: 'counter',
  error: 'counter',
  error_fault: 'counter',
  delay_fault: 'counter',
} as const;

/** Scope `redis.<stat_prefix>.command.<command>.` */
export const CommandStats = defineLayout({ ...COMMAND, latency: 'histogram' });
/** The same with `latency_in_micros`. Both have the same slots. */
export const CommandStatsInMicros = defineLayout({ ...COMMAND, latency: 'histogram_us' });

export interface ProxyStats {
  readonly proxy: Scope;
  readonly splitter: Scope;
  /** By the command's name in small letters. */
  readonly commands: ReadonlyMap<string, Scope>;
}
