// POST /heapprofiler: samples the live allocations of all threads. /heap_dump and /peak_heap_dump return the result while the
// profiler runs, and the file admin.profile_path has it when the profiler is stopped (FACTS §2.17).

import { type AdminHandler, Refusal } from '../../admin-handler.js';
import { ENABLE, isEnabling } from '../../profiler-switch.js';

export const heapProfiler: AdminHandler = {
  path: '/heapprofiler',
  mutates: true,
  help: 'enable/disable the heap profiler',
  parameters: [ENABLE],
  async handle({ query }, { profilers }) {
    if (isEnabling(query)) {
      const started = await profilers.start('heap');
      if (started.isStarted) return { body: 'Starting heap profiler' };
      throw new Refusal(started.isFailure ? 500 : 400, `Fail to start heap profiler: ${started.why}`);
    }
    const profile = await profilers.stop('heap');
    if (profile === undefined) throw new Refusal(400, 'Fail to stop heap profiler: not started');
    return { body: `Heap profiler stopped and data written to ${profilers.path}` };
  },
};
