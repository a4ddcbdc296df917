// GET /heap_dump and /peak_heap_dump: the heap memory in use of all threads, now and at its peak, for pprof.

import { type AdminHandler, Refusal } from '../../admin-handler.js';
import { PROFILE_TYPE } from '../../profiler-switch.js';

export const heapDump: AdminHandler = {
  path: '/heap_dump',
  mutates: false,
  help: 'dump current heap profile',
  parameters: [],
  async handle(_request, { profilers }) {
    return { contentType: PROFILE_TYPE, body: await profilers.heap() };
  },
};

export const peakHeapDump: AdminHandler = {
  path: '/peak_heap_dump',
  mutates: false,
  help: 'dump the heap profile of the peak since the heap profiler was started',
  parameters: [],
  async handle(_request, { profilers }) {
    const body = await profilers.peakHeap();
    if (body === undefined) {
      throw new Refusal(503, 'There is no peak yet: POST /heapprofiler?enable=y starts recording it.\n');
    }
    return { contentType: PROFILE_TYPE, body };
  },
};
