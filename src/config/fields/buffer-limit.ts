// per_connection_buffer_limit_bytes of listeners and clusters.

const DEFAULT_BYTES = 1024 * 1024;
const NO_LIMIT = 2 ** 32 - 1;

/** Returns how many bytes a connection, and each of its filters, may buffer: 1 MiB by default; 0 means no limit, as in Envoy. */
export function bufferLimitBytes(configured?: number): number {
  return configured === 0 ? NO_LIMIT : (configured ?? DEFAULT_BYTES);
}
