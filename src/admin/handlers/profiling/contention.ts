// GET /contention: how often and how long threads waited for each other (envoy.admin.v3.MutexStats). A cycle is a
// nanosecond.

import type { AdminHandler } from '../../admin-handler.js';
import { JSON_TYPE, prettyJson } from '../../json.js';

export const contention: AdminHandler = {
  path: '/contention',
  mutates: false,
  help: 'dump current contention stats (if enabled)',
  parameters: [],
  handle(_request, services) {
    const sums = services.contention();
    if (sums === undefined) {
      return {
        body: 'Mutex contention tracing is not enabled. To enable, run Baton with flag --enable-mutex-tracing.',
      };
    }
    const stats = {
      num_contentions: String(sums.count),
      current_wait_cycles: String(sums.lastNs),
      lifetime_wait_cycles: String(sums.totalNs),
    };
    return { contentType: JSON_TYPE, body: `${prettyJson(stats)}\n` };
  },
};
