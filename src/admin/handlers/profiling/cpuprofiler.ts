// POST /cpuprofiler: profiles the processor time of all threads into the file admin.profile_path (FACTS §2.17).

import { getLogger } from '../../../log/logger.js';
import { type AdminHandler, OK, Refusal } from '../../admin-handler.js';
import { ENABLE, isEnabling } from '../../profiler-switch.js';

const logger = getLogger('admin');

export const cpuProfiler: AdminHandler = {
  path: '/cpuprofiler',
  mutates: true,
  help: 'enable/disable the CPU profiler',
  parameters: [ENABLE],
  async handle({ query }, { profilers }) {
    if (!isEnabling(query)) {
      await profilers.stop('cpu');
      return OK;
    }
    const started = await profilers.start('cpu');
    if (started.isStarted) return OK;
    logger.error(`the CPU profiler does not start: ${started.why}`);
    throw new Refusal(500, 'failure to start the profiler');
  },
};
