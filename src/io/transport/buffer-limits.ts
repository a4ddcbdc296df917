// How many bytes of a connection may be buffered.

export interface BufferLimits {
  /** Pending bytes above which onBlocked() is called. */
  highWatermark: number;
  /** Pending bytes at which the connection is reset (ENOBUFS); 0: no limit. */
  hardLimit: number;
  /** Maximum bytes that are received at once, which must be buffered if they cannot be forwarded. At least 4096. */
  receiveLimit: number;
}

/**
 * Returns the limits for a connection that may buffer `bytes` (per_connection_buffer_limit_bytes). Unsent bytes must be copied, so the
 * source is paused long before a large limit is reached: 64 KiB keep the socket busy, and a megabyte costs page faults. The receive limit
 * is within `bytes`, because received bytes are buffered when their reader is slow.
 */
export function bufferLimits(bytes: number): BufferLimits {
  return { highWatermark: Math.min(bytes, MAX_PENDING), hardLimit: 0, receiveLimit: Math.min(bytes, MAX_RECEIVED) };
}

const MAX_PENDING = 64 * 1024;
/** The shim's maximum for one receive. */
const MAX_RECEIVED = 1024 * 1024;
