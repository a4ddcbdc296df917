// POST /reopen_logs: after log files were moved away.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const reopenLogs: AdminHandler = {
  path: '/reopen_logs',
  mutates: true,
  help: 'reopen access logs',
  parameters: [],
  handle(_request, services) {
    services.reopenLogs();
    return OK;
  },
};
