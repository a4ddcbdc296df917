// POST /quitquitquit: a clean exit.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const quit: AdminHandler = {
  path: '/quitquitquit',
  mutates: true,
  isUrgent: true,
  help: 'exit the server',
  parameters: [],
  handle(_request, services) {
    services.quit();
    return OK;
  },
};
