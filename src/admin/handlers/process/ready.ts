// GET /ready: whether the server accepts traffic, for health checks of orchestrators.

import type { AdminHandler } from '../../admin-handler.js';

export const ready: AdminHandler = {
  path: '/ready',
  mutates: false,
  isUrgent: true,
  help: 'print server state, return 200 if LIVE, otherwise return 503',
  parameters: [],
  handle(_request, services) {
    const state = services.state();
    return { status: state === 'LIVE' ? 200 : 503, body: `${state}\n` };
  },
};
