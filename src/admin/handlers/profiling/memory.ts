// GET /memory: the memory of the process in bytes (envoy.admin.v3.Memory).
//
// The fields are named after another allocator. Here they describe V8's heaps, summed over all threads. allocated: in use;
// heap_size: reserved; pageheap_unmapped: reserved, not backed by memory; pageheap_free: backed, not in use;
// total_thread_cache: what V8 took from malloc() for each thread; total_physical_bytes: the whole process.

import { heapBytes, residentBytes } from '../../../common/process/thread-memory.js';
import type { AdminHandler } from '../../admin-handler.js';
import { JSON_TYPE, prettyJson } from '../../json.js';

export const memory: AdminHandler = {
  path: '/memory',
  mutates: false,
  help: 'print current allocation/heap usage',
  parameters: [],
  async handle(_request, services) {
    const heaps = (await services.memory()).map((thread) => thread.heap);
    const sum = (value: (heap: (typeof heaps)[number]) => number) =>
      heaps.reduce((total, heap) => total + value(heap), 0);
    const numbers = {
      allocated: sum((heap) => heapBytes(heap).allocated),
      heap_size: sum((heap) => heapBytes(heap).reserved),
      pageheap_unmapped: sum((heap) => Math.max(0, heap.total_heap_size - heap.total_physical_size)),
      pageheap_free: sum((heap) => Math.max(0, heap.total_physical_size - heap.used_heap_size)),
      total_thread_cache: sum((heap) => heap.malloced_memory),
      total_physical_bytes: residentBytes(),
    };
    const strings = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, String(value)]));
    return { contentType: JSON_TYPE, body: `${prettyJson(strings)}\n` };
  },
};
