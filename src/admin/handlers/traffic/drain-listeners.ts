// POST /drain_listeners: stops listeners; with graceful, after a time in which clients are asked to close their connections.

import { type AdminHandler, OK, Refusal } from '../../admin-handler.js';

export const drainListeners: AdminHandler = {
  path: '/drain_listeners',
  mutates: true,
  isUrgent: true,
  help: 'drain listeners',
  parameters: [
    {
      name: 'graceful',
      help: 'Ask connections to close during --drain-time-s before the listeners are stopped',
      isFlag: true,
    },
    { name: 'skip_exit', help: 'Do not stop the listeners after that time; only with graceful', isFlag: true },
    { name: 'inboundonly', help: 'Drain only listeners whose traffic_direction is INBOUND', isFlag: true },
  ],
  async handle({ query }, services) {
    const isGraceful = query.has('graceful');
    if (query.has('skip_exit') && !isGraceful) throw new Refusal(400, 'skip_exit requires graceful\n');
    const inboundOnly = query.has('inboundonly');
    if (isGraceful) services.drainListeners(inboundOnly, query.has('skip_exit'));
    else await services.stopListeners(inboundOnly);
    return OK;
  },
};
