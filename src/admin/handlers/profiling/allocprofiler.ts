// POST /allocprofiler: profiles the allocations of all threads, including collected ones. Stopping it returns the profile,
// which is also written to the file admin.profile_path.

import { type AdminHandler, Refusal } from '../../admin-handler.js';
import { ENABLE, isEnabling, PROFILE_TYPE } from '../../profiler-switch.js';

export const allocProfiler: AdminHandler = {
  path: '/allocprofiler',
  mutates: true,
  help: 'enable/disable the allocation profiler',
  parameters: [ENABLE],
  async handle({ query }, { profilers }) {
    if (isEnabling(query)) {
      const started = await profilers.start('allocations');
      if (started.isStarted) return { body: 'Starting allocation profiler' };
      throw new Refusal(started.isFailure ? 500 : 400, `Fail to start allocation profiler: ${started.why}`);
    }
    const profile = await profilers.stop('allocations');
    if (profile === undefined) throw new Refusal(400, 'Fail to stop allocation profiler: not started');
    return { contentType: PROFILE_TYPE, body: profile };
  },
};
