// ListenersConfigDump: the active, warming and draining listeners.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { JsonObject } from '../../../admin/json.js';
import type { Listener } from '../../../config/generated/api.js';
import { REQUESTED } from '../../../xds/dynamic-state.js';
import { RESOURCE_MESSAGES } from '../../../xds/resource.js';
import type { ListenerDiscovery } from '../../listeners/lds.js';
import type { ListenerSet } from '../../listeners/listener-set.js';
import type { ListenerSpec } from '../../listeners/version/primary-listener.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';
import { any, type Dump, mapped } from './dump.js';
import { statusFields, versionFields } from './state-fields.js';

interface WithSpec {
  readonly spec: ListenerSpec;
}

/** `configured`: the bootstrap's listeners as shown, loaded at `loadedAt`. */
export function listenersDump(running: RunningConfiguration, configured: readonly Listener[], loadedAt: string): Dump {
  const { listenerDiscovery, listeners } = running;
  const version = listenerDiscovery?.version ?? '';
  const dynamic = dynamicNames(listeners, listenerDiscovery);
  return {
    message: 'ListenersConfigDump',
    ...(version !== '' && { fields: { version_info: version } }),
    lists: {
      static_listeners: staticListeners(listeners, configured, loadedAt),
      ...(dynamic.size > 0 && {
        dynamic_listeners: mapped(
          () => dynamic,
          (name) => dynamicListener(name, listeners, listenerDiscovery),
        ),
      }),
    },
  };
}

function staticListeners(set: ListenerSet, configured: readonly Listener[], loadedAt: string): Iterable<DumpResource> {
  return mapped(
    () => [...set.byName.values()].filter(({ spec }) => spec.isStatic),
    ({ name, spec: { number, shown, state } }) => {
      const message = (number === undefined ? undefined : configured[number]) ?? shown;
      const last_updated = number === undefined ? state.lastUpdated?.toISOString() : loadedAt;
      return { name, message: { listener: any(RESOURCE_MESSAGES.listener, message), last_updated } };
    },
  );
}

/** Returns the names of all dynamic listeners, and of those that could not be used. */
function dynamicNames(set: ListenerSet, discovery: ListenerDiscovery | undefined): Set<string> {
  const names = new Set<string>();
  for (const { isStatic, name } of set.specs()) if (!isStatic) names.add(name);
  for (const { name, spec } of set.draining.listeners()) if (!spec.isStatic) names.add(name);
  for (const name of discovery?.failures.keys() ?? []) names.add(name);
  return names;
}

function dynamicListener(name: string, set: ListenerSet, discovery: ListenerDiscovery | undefined): DumpResource {
  const { active, warming } = stagesOf(name, set);
  const draining = [...set.draining.listeners()].findLast((each) => each.name === name);
  const state = discovery?.failures.get(name) ?? active?.spec.state ?? (warming && REQUESTED);
  return {
    name,
    message: {
      name: name || undefined,
      active_state: active && stateFields(active.spec),
      warming_state: warming && stateFields(warming.spec),
      draining_state: draining && stateFields(draining.spec),
      // A listener that only drains is no longer subscribed.
      ...(state && statusFields(RESOURCE_MESSAGES.listener, state)),
    },
  };
}

/** Before the server accepts connections, every listener counts as warming: the server may be waiting for it. */
function stagesOf(name: string, set: ListenerSet): { active?: WithSpec | undefined; warming?: WithSpec | undefined } {
  const active = set.byName.get(name);
  return set.isRunning ? { active, warming: set.warming.get(name) } : { warming: active };
}

function stateFields({ shown, state }: ListenerSpec): JsonObject {
  return { ...versionFields(state), listener: any(RESOURCE_MESSAGES.listener, shown) };
}
