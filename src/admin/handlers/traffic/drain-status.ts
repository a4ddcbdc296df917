// GET /drain_status: the progress of the latest drain, and the remaining connections and requests per listener.

import type { AdminHandler } from '../../admin-handler.js';
import type { DrainingListenerView, DrainStatusView } from '../../admin-services.js';
import { JSON_TYPE, type JsonObject, prettyJson, prettyList } from '../../json.js';
import { textPieces } from '../../stats/text-pieces.js';

export const drainStatus: AdminHandler = {
  path: '/drain_status',
  mutates: false,
  help: 'print how far draining is, and the connections and requests that are left',
  parameters: [],
  async handle(_request, services) {
    return { contentType: JSON_TYPE, body: textPieces(statusJson(await services.drainStatus())) };
  },
};

function* statusJson({ drain, listeners }: DrainStatusView): Generator<string, void> {
  if (listeners.length === 0) yield prettyJson({ ...drainJson(drain), listeners: [] });
  else yield* prettyList(drainJson(drain), 'listeners', elements(listeners));
  yield '\n';
}

function drainJson(drain: DrainStatusView['drain']): JsonObject {
  if (drain === undefined) return { mode: 'none' };
  const { elapsedMs, reach, reason, remainingMs, strategy } = drain;
  return { mode: strategy, reach, reason, elapsed: durationText(elapsedMs), remaining: durationText(remainingMs) };
}

function* elements(listeners: readonly DrainingListenerView[]): Generator<[string], void> {
  for (const listener of listeners) yield [prettyJson(listenerJson(listener), 2)];
}

function listenerJson({ change, connections, name, requests, state }: DrainingListenerView): JsonObject {
  const row: JsonObject = { name, state, connections, requests };
  if (change === undefined) return row;
  const { filterChain, remainingMs, strategy } = change;
  const remaining = durationText(remainingMs);
  return { ...row, filter_chain: filterChain, reason: 'listener-change', mode: strategy, remaining };
}

/** Formats a Duration as proto JSON does. */
function durationText(milliseconds: number): string {
  return `${(Math.round(milliseconds) / 1000).toFixed(3)}s`;
}
