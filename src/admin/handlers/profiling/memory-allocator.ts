// GET /memory/allocator: the composition of each thread's heap.

import { arrayBufferBytes, residentBytes, type ThreadMemory } from '../../../common/process/thread-memory.js';
import type { AdminHandler } from '../../admin-handler.js';

export const memoryAllocator: AdminHandler = {
  path: '/memory/allocator',
  aliases: ['/memory/tcmalloc'],
  mutates: false,
  help: 'print the current allocator stats',
  parameters: [],
  async handle(_request, services) {
    const threads = await services.memory();
    const arrayBuffers = arrayBufferBytes();
    const head = `process: ${residentBytes()} bytes resident, ${arrayBuffers} bytes of buffers of the primary\n`;
    return { body: head + threads.map(threadText).join('') };
  },
};

function threadText({ name, heap, spaces, arrayBuffers }: ThreadMemory): string {
  const total =
    `\n${name}: ${heap.used_heap_size} bytes in use of ${heap.total_heap_size} reserved (${heap.total_physical_size} resident), ` +
    `limit ${heap.heap_size_limit}\n` +
    `  external ${heap.external_memory}, buffers ${arrayBuffers}, malloc ${heap.malloced_memory} (peak ${heap.peak_malloced_memory}), ` +
    `contexts ${heap.number_of_native_contexts} (detached ${heap.number_of_detached_contexts})\n` +
    `  ${'space'.padEnd(26)}${columns('used', 'available', 'size', 'resident')}\n`;
  const lines = spaces.map(
    ({ space_name, space_used_size, space_available_size, space_size, physical_space_size }) =>
      `  ${space_name.padEnd(26)}${columns(space_used_size, space_available_size, space_size, physical_space_size)}\n`,
  );
  return total + lines.join('');
}

function columns(...cells: (string | number)[]): string {
  return cells.map((cell) => String(cell).padStart(12)).join('');
}
