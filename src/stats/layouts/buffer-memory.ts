// Stats of a worker's buffer memory, which holds parts of requests and responses.

import { defineLayout } from '../layout.js';

/** Scope `server.worker_<N>.` */
export const BufferMemoryStats = defineLayout({
  buffer_memory_limit: 'gauge',
  buffer_memory_used: 'gauge',
  buffer_memory_unsent: 'gauge',
  buffer_memory_outside: 'gauge',
  buffer_memory_resident: 'gauge',
  buffer_memory_fallbacks: 'counter',
  buffer_memory_waits: 'counter',
  buffer_memory_ended: 'counter',
  buffer_memory_refusals: 'counter',
});

export function bufferMemoryPrefix(worker: number): string {
  return `server.worker_${worker}.`;
}
