// POST /healthcheck/ok: reverts /healthcheck/fail.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const healthcheckOk: AdminHandler = {
  path: '/healthcheck/ok',
  mutates: true,
  isUrgent: true,
  help: 'cause the server to pass health checks',
  parameters: [],
  handle(_request, services) {
    services.setHealthFailing(false);
    return OK;
  },
};
