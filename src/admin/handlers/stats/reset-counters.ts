// POST /reset_counters: resets counters for the admin interface, but not for sinks.

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
