// The latest drain, and what updates have replaced, for the admin interface.

import type { DrainingListenerView, DrainStatusView } from '../../admin/admin-services.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import type { ListenerSet } from '../listeners/listener-set.js';

export async function drainStatus({ byName, drains, draining }: ListenerSet): Promise<DrainStatusView> {
  const open = await drains.openConnections();
  const listeners: DrainingListenerView[] = [];
  for (const listener of byName.values()) {
    const { connections = 0, requests = 0 } = open.listeners.get(listener.id) ?? {};
    const state = drains.manager.isDraining(listener) ? 'DRAINING' : listener.isStopped ? 'STOPPED' : 'ACTIVE';
    listeners.push({ name: listener.name, state, connections, requests });
  }
  const now = monotonicMs();
  for (const { chain, id, listener, window } of draining.all) {
    const { connections = 0, requests = 0 } = open.listeners.get(id) ?? {};
    const remainingMs = Math.max(0, window.startMs + window.timeMs - now);
    const change = { strategy: window.strategy, filterChain: chain && (chain.config.name ?? ''), remainingMs };
    listeners.push({ name: listener.name, state: 'DRAINING', connections, requests, change });
  }
  const drain = drains.manager.latest;
  if (drain === undefined) return { drain: undefined, listeners };
  const { reach, reason, strategy, timeMs } = drain.options;
  const elapsedMs = now - drain.startMs;
  const remainingMs = Math.max(0, timeMs - elapsedMs);
  return { drain: { strategy, reach, reason, elapsedMs, remainingMs }, listeners };
}
