// GET /stats/monitoring: all stats for scraping by a monitoring system.

import type { AdminHandler } from '../../admin-handler.js';
import { MONITORING_BUCKETS, MONITORING_PARAMETERS, monitoringAnswer } from '../../stats/monitoring-answer.js';
import { FILTER, SELECTION_PARAMETERS, USED_ONLY } from '../../stats/stats-parameters.js';

export const monitoring: AdminHandler = {
  path: '/stats/monitoring',
  aliases: ['/stats/prometheus'],
  mutates: false,
  help: 'print server stats in monitoring format',
  parameters: [USED_ONLY, FILTER, ...SELECTION_PARAMETERS, MONITORING_BUCKETS, ...MONITORING_PARAMETERS],
  handle: monitoringAnswer,
};
