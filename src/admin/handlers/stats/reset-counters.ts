// POST /reset_counters: counters count from 0 again, here but not in what sinks are told.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const resetCounters: AdminHandler = {
  path: '/reset_counters',
  mutates: true,
  help: 'reset all counters to zero',
  parameters: [],
  async handle(_request, services) {
    await services.resetCounters();
    return OK;
  },
};
