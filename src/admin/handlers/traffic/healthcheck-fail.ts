// POST /healthcheck/fail: makes health checks fail, so that load balancers remove this server.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const healthcheckFail: AdminHandler = {
  path: '/healthcheck/fail',
  mutates: true,
  isUrgent: true,
  help: 'cause the server to fail health checks',
  parameters: [],
  handle(_request, services) {
    services.setHealthFailing(true);
    return OK;
  },
};
