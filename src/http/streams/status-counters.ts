// Counts the statuses of responses to clients, by connection manager and by listener.

import { HttpStats, ListenerHttpStats } from '../../stats/layouts/http.js';
import type { ConnectionManagerStats } from '../manager-context.js';

export function countStatus({ http, listener }: ConnectionManagerStats, status: number): void {
  http.increment(HttpStats.at.downstream_rq_completed);
  listener.increment(ListenerHttpStats.at.downstream_rq_completed);
  const classOf = (status / 100) | 0;
  if (classOf < 1 || classOf > 5) return;
  http.increment(HttpStats.at.downstream_rq_1xx + classOf - 1);
  listener.increment(ListenerHttpStats.at.downstream_rq_1xx + classOf - 1);
}
