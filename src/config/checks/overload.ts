// The overload manager: names, triggers and configurations that belong together. The texts are close to Envoy's.

import { existsSync } from 'node:fs';
import { CONNECTION_MONITOR } from '../fields/connection-monitor.js';
import { Action, REFUSED_ACTIONS, ShedPoint } from '../fields/overload-names.js';
import type { OverloadAction, OverloadManager, ResourceMonitor, Trigger } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';
import { checkUnique } from './names/unique-names.js';

const MONITORS = 'envoy.extensions.resource_monitors';
const CONFIGS: Readonly<Record<string, string>> = {
  [Action.ReduceTimeouts]: 'envoy.config.overload.v3.ScaleTimersOverloadActionConfig',
  [Action.ShrinkHeap]: 'envoy.config.overload.v3.ShrinkHeapConfig',
};

export function checkOverload(manager: OverloadManager | undefined, problems: Problems): void {
  const { actions = [], loadshed_points: points = [], resource_monitors: monitors = [] } = manager ?? {};
  const at = (...path: Path) => ['overload_manager', ...path];
  const names = (list: readonly ({ readonly name?: string } | undefined)[], field: string, what: string) => {
    const place = (index: number) => at(field, index, 'name');
    checkUnique(
      list.map((each) => each?.name),
      place,
      what,
      problems,
    );
  };
  names(monitors, 'resource_monitors', 'resource monitor');
  names(actions, 'actions', 'overload action');
  names(points, 'loadshed_points', 'load shed point');
  monitors.forEach((monitor, index) => {
    if (monitor) checkMonitor(monitor, at('resource_monitors', index), problems);
  });
  const known = new Set(monitors.map((monitor) => monitor?.name));
  actions.forEach((action, index) => {
    if (!action) return;
    const path = at('actions', index);
    checkAction(action, path, problems);
    checkTriggers(action.triggers ?? [], known, path, problems);
  });
  points.forEach((point, index) => {
    if (!point) return;
    const path = at('loadshed_points', index);
    checkTriggers(point.triggers ?? [], known, path, problems);
    if (actions.some((action) => action?.name === point.name))
      problems.error(
        [...path, 'name'],
        `load shed point '${point.name}' conflicts with an overload action of the same name`,
      );
    else if (!(Object.values(ShedPoint) as readonly string[]).includes(point.name ?? ''))
      problems.warn([...path, 'name'], `there is no load shed point '${point.name}': it has no effect`);
  });
}

function checkMonitor(monitor: ResourceMonitor, path: Path, problems: Problems): void {
  const { name, typed_config: config } = monitor;
  const at = [...path, 'typed_config'];
  if (problems.has([...path, 'name']) || problems.has([...at, '@type'])) return;
  const isOfConnections =
    unpack(config, `${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig`) !== undefined;
  if (isOfConnections && name !== CONNECTION_MONITOR)
    problems.error([...path, 'name'], `the connection monitor must have the name '${CONNECTION_MONITOR}'`);
  const heap = unpack(config, `${MONITORS}.fixed_heap.v3.FixedHeapConfig`);
  if (heap !== undefined) {
    const { max_heap_size_bytes: fixed = 0, max_heap_size_bytes_runtime: runtime } = heap;
    if (Number(fixed) > 0 && runtime !== undefined)
      problems.error(at, 'exactly one of max_heap_size_bytes and max_heap_size_bytes_runtime must be set');
    else if (!(Number(runtime?.default_value ?? fixed) > 0))
      problems.error(at, 'the maximum heap size must be above 0');
  }
  const injected = unpack(config, `${MONITORS}.injected_resource.v3.InjectedResourceConfig`);
  if (injected?.filename && !existsSync(injected.filename))
    problems.error([...at, 'filename'], `'${injected.filename}' does not exist`);
}

function checkAction(action: OverloadAction, path: Path, problems: Problems): void {
  const { name = '', typed_config: config } = action;
  const at = [...path, 'name'];
  if (problems.has(at)) return;
  const refusal = REFUSED_ACTIONS[name];
  if (refusal !== undefined) return problems.error(at, `the action '${name}' is not implemented: ${refusal}`);
  if (!(Object.values(Action) as readonly string[]).includes(name))
    return problems.error(at, `unknown overload action '${name}'`);
  const expected = CONFIGS[name];
  const place = [...path, 'typed_config'];
  if (config === undefined) {
    if (name === Action.ReduceTimeouts) problems.error(path, `overload action '${name}' requires typed_config`);
    return;
  }
  if (problems.has([...place, '@type'])) return;
  if (expected === undefined || unpack(config, expected as 'envoy.config.overload.v3.ShrinkHeapConfig') === undefined)
    return problems.error(place, `the overload action '${name}' conflicts with its typed_config`);
  const { timer_scale_factors: timers = [] } =
    unpack(config, 'envoy.config.overload.v3.ScaleTimersOverloadActionConfig') ?? {};
  checkUnique(
    timers.map((timer) => timer?.timer),
    (index) => [...place, 'timer_scale_factors', index, 'timer'],
    'timer type',
    problems,
  );
}

function checkTriggers(
  triggers: readonly (Trigger | undefined)[],
  monitors: ReadonlySet<string | undefined>,
  path: Path,
  problems: Problems,
): void {
  const place = (index: number) => [...path, 'triggers', index];
  checkUnique(
    triggers.map((trigger) => trigger?.name),
    (index) => [...place(index), 'name'],
    'trigger resource',
    problems,
  );
  triggers.forEach((trigger, index) => {
    if (!trigger) return;
    const at = [...place(index), 'name'];
    if (!monitors.has(trigger.name) && !problems.has(at))
      problems.error(at, `unknown trigger resource '${trigger.name}'`);
    const { scaled } = trigger;
    if (scaled && Number(scaled.scaling_threshold ?? 0) >= Number(scaled.saturation_threshold ?? 0))
      problems.error([...place(index), 'scaled'], 'scaling_threshold must be less than saturation_threshold');
  });
}
