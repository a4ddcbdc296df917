// Scope `access_logs.grpc_access_log.`, which all gRPC access loggers share.

import { defineLayout } from '../../sdk.js';

export const STATS_PREFIX = 'access_logs.grpc_access_log.';

export const GrpcLogStats = defineLayout({
  /** Entries of HTTP that were collected, and entries that were dropped because earlier ones could not be sent. */
  logs_written: 'counter',
  logs_dropped: 'counter',
  /** Entries that were passed to a stream. Each flush that fails counts its entries. */
  grpc_entries_flushed: 'counter',
  grpc_entries_flush_failed: 'counter',
});
