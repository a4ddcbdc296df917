// The endpoints of the admin interface: a further one is a file here and a line below.

import type { AdminHandler } from '../admin-handler.js';
import { clusters } from './clusters.js';
import { help } from './help.js';
import { listeners } from './listeners.js';
import { quit } from './quitquitquit.js';
import { ready } from './ready.js';
import { reopenLogs } from './reopen-logs.js';
import { serverInfo } from './server-info.js';
import { stats } from './stats.js';

export const HANDLERS: readonly AdminHandler[] = [
  clusters,
  help,
  listeners,
  quit,
  ready,
  reopenLogs,
  serverInfo,
  stats,
];
