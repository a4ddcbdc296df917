// GET /drain_status: how far the latest drain is, and what is left at each listener.

import type { AdminHandler } from '../../admin-handler.js';
import type { DrainingListenerView, DrainStatusView } from '../../admin-services.js';
import { JSON_TYPE, type JsonObject, prettyJson } from '../../json.js';

export const drainStatus: AdminHandler = {
  path: '/drain_status',
  mutates: false,
  help: 'print how far draining is, and the connections and requests that are left',
  parameters: [],
  async handle(_request, services) {
    return { contentType: JSON_TYPE, body: `${prettyJson(statusJson(await services.drainStatus()))}\n` };
  },
};

function statusJson({ drain, listeners }: DrainStatusView): JsonObject {
  const rows = listeners.map(listenerJson);
  if (drain === undefined) return { mode: 'none', listeners: rows };
  const { reach, reason, strategy } = drain;
  return {
    mode: strategy,
    reach,
    reason,
    elapsed: durationText(drain.elapsedMs),
    remaining: durationText(drain.remainingMs),
    listeners: rows,
  };
}

function listenerJson({ change, connections, name, requests, state }: DrainingListenerView): JsonObject {
  const row: JsonObject = { name, state, connections, requests };
  if (change === undefined) return row;
  const { filterChain, remainingMs, strategy } = change;
  const remaining = durationText(remainingMs);
  return { ...row, filter_chain: filterChain, reason: 'listener-change', mode: strategy, remaining };
}

/** As proto JSON writes a Duration. */
function durationText(milliseconds: number): string {
  return `${(Math.round(milliseconds) / 1000).toFixed(3)}s`;
}
