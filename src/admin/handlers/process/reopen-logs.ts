// POST /reopen_logs: reopens log files after they were moved.

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
