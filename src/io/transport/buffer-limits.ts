// How much of a connection's bytes may wait on this side.

export interface BufferLimits {
  /** Pending bytes from which on the handler is told onBlocked(). */
  highWatermark: number;
  /** Pending bytes at which the connection is given up (ENOBUFS); 0: no limit. */
  hardLimit: number;
  /** Most bytes that are received at once: they wait here when nobody takes them. At least 4096. */
  receiveLimit: number;
}

/**
 * Limits for a connection that may buffer `bytes` (per_connection_buffer_limit_bytes). What the kernel does not take must be
 * copied, so the source is stopped long before a large limit is reached: 64 KiB keep the socket busy, and a megabyte costs
 * page faults. What is received at once waits too when its reader is slow, so it stays within the limit.
 */
export function bufferLimits(bytes: number): BufferLimits {
  return { highWatermark: Math.min(bytes, MOST_PENDING), hardLimit: 0, receiveLimit: Math.min(bytes, MOST_RECEIVED) };
}

const MOST_PENDING = 64 * 1024;
/** The shim's largest share. */
const MOST_RECEIVED = 1024 * 1024;
