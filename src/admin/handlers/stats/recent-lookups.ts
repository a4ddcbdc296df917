// /stats/recentlookups: the stats that were looked up by name, to find what makes stats slow.

import { type AdminHandler, OK } from '../../admin-handler.js';

export const recentLookups: AdminHandler = {
  path: '/stats/recentlookups',
  mutates: false,
  help: 'show recent lookups of stats by name',
  parameters: [],
  handle(_request, services) {
    const lookups = services.stats.recentLookups;
    const total = `\ntotal: ${lookups.total}\n`;
    if (!lookups.isEnabled) {
      return { body: `Lookup tracking is not enabled. Use /stats/recentlookups/enable to enable.\n${total}` };
    }
    const rows = lookups.entries().map(({ name, count }) => `${String(count).padStart(8)} ${name}\n`);
    return { body: `   Count Lookup\n${rows.join('')}${total}` };
  },
};

export const recentLookupsEnable: AdminHandler = {
  path: '/stats/recentlookups/enable',
  mutates: true,
  help: 'enable recording of the names of stat lookups',
  parameters: [],
  handle(_request, services) {
    services.stats.recentLookups.enable();
    return OK;
  },
};

export const recentLookupsDisable: AdminHandler = {
  path: '/stats/recentlookups/disable',
  mutates: true,
  help: 'disable recording of the names of stat lookups',
  parameters: [],
  handle(_request, services) {
    services.stats.recentLookups.disable();
    return OK;
  },
};

export const recentLookupsClear: AdminHandler = {
  path: '/stats/recentlookups/clear',
  mutates: true,
  help: 'clear the names of stat lookups and their count',
  parameters: [],
  handle(_request, services) {
    services.stats.recentLookups.clear();
    return OK;
  },
};
