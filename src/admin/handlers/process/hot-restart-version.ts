// GET /hot_restart_version: the version that must be equal for one server to take over from another.

import type { AdminHandler } from '../../admin-handler.js';

export const hotRestartVersion: AdminHandler = {
  path: '/hot_restart_version',
  mutates: false,
  isUrgent: true,
  help: 'print the hot restart compatibility version',
  parameters: [],
  handle: (_request, services) => ({ body: services.hotRestartVersion }),
};
