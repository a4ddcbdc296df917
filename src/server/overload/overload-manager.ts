// The overload manager on the primary: it queries the resource monitors at an interval, determines the states of actions and load shed
// points from them, and publishes changes to the workers.

import { messageOf } from '../../common/errors/errors.js';
import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import type { Bootstrap, Trigger } from '../../config/generated/api.js';
import type { PrimaryPort } from '../../extensions/factories.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { getLogger } from '../../log/logger.js';
import type { OverloadState } from '../../runtime/overload/overload-state.js';
import { triggerState } from '../../runtime/overload/triggers.js';
import type { Runtime } from '../../runtime/runtime.js';
import {
  ActionStats,
  LoadShedPointStats,
  MonitorStats,
  OverloadStats,
  overloadPrefix,
} from '../../stats/layouts/overload.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { Primary } from '../primary.js';
import { createMonitor } from './monitors/create.js';
import type { ResourceMonitor } from './monitors/monitor.js';

const logger = getLogger('main');

/** As in Envoy. */
const DEFAULT_INTERVAL_MS = 1000;
/** Lower limit of refresh_interval. */
const MIN_INTERVAL_MS = 10;

export interface OverloadManagerOptions {
  readonly primary: Pick<Primary, 'scopes'>;
  readonly runtime: Runtime;
  /** Publishes OverloadState. */
  readonly port: Pick<PrimaryPort, 'publish'>;
  /** Called after each refresh. */
  readonly refreshed: (state: OverloadState) => void;
}

interface Monitored {
  readonly name: string;
  readonly monitor: ResourceMonitor;
  readonly stats: Scope;
  /** Undefined until it was read. A failed update keeps the previous value. */
  pressure: number | undefined;
  lastFailure: string;
}

/** An action or a load shed point. */
interface Reaction {
  readonly name: string;
  readonly triggers: readonly Trigger[];
  report(value: number): void;
  value: number;
}

export class OverloadManager {
  readonly #options: OverloadManagerOptions;
  readonly #monitors: readonly Monitored[];
  readonly #reactions: readonly Reaction[];
  readonly #stats: Scope;
  readonly #intervalMs: number;
  readonly #timer: NodeJS.Timeout;
  #dueMs: number;

  /** `config` has monitors that are queried at an interval. Throws an Error when a resource cannot be measured here. */
  constructor(config: NonNullable<Bootstrap['overload_manager']>, options: OverloadManagerOptions) {
    const { primary, runtime } = options;
    this.#options = options;
    this.#stats = primary.scopes.add('overload.', OverloadStats);
    this.#monitors = (config.resource_monitors ?? []).flatMap((each) => {
      const monitor = createMonitor(each, runtime);
      if (monitor === undefined) return [];
      const stats = primary.scopes.add(overloadPrefix(each.name!), MonitorStats);
      return [{ name: each.name!, monitor, stats, pressure: undefined, lastFailure: '' }];
    });
    this.#reactions = [
      ...(config.actions ?? []).map((each) => this.#action(each.name!, each.triggers!)),
      ...(config.loadshed_points ?? []).map((each) => this.#point(each.name!, each.triggers!)),
    ];
    const intervalMs = durationMs(config.refresh_interval, DEFAULT_INTERVAL_MS);
    this.#intervalMs = Math.min(MAX_TIMER_MS, Math.max(MIN_INTERVAL_MS, intervalMs));
    this.#dueMs = monotonicMs() + this.#intervalMs;
    this.#timer = setInterval(() => this.#refresh(), this.#intervalMs);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #action(name: string, triggers: readonly Trigger[]): Reaction {
    const stats = this.#options.primary.scopes.add(overloadPrefix(name), ActionStats);
    const report = (value: number) => {
      stats.set(ActionStats.at.active, value === 1 ? 1 : 0);
      stats.set(ActionStats.at.scale_percent, percent(value));
    };
    return { name, triggers, report, value: 0 };
  }

  #point(name: string, triggers: readonly Trigger[]): Reaction {
    const stats = this.#options.primary.scopes.add(overloadPrefix(name), LoadShedPointStats);
    const report = (value: number) => stats.set(LoadShedPointStats.at.scale_percent, percent(value));
    return { name, triggers, report, value: 0 };
  }

  #refresh(): void {
    const now = monotonicMs();
    this.#stats.record(OverloadStats.at.refresh_interval_delay, Math.max(0, Math.round(now - this.#dueMs)));
    this.#dueMs = now + this.#intervalMs;
    const pressures = new Map<string, number>();
    for (const monitored of this.#monitors) {
      this.#read(monitored);
      if (monitored.pressure !== undefined) pressures.set(monitored.name, monitored.pressure);
    }
    let hasChanged = false;
    for (const reaction of this.#reactions) hasChanged = update(reaction, pressures) || hasChanged;
    const state = this.#state();
    if (hasChanged) this.#options.port.publish(state);
    this.#options.refreshed(state);
  }

  #read(monitored: Monitored): void {
    const { monitor, name, stats } = monitored;
    try {
      monitored.pressure = monitor.read();
      monitored.lastFailure = '';
      stats.set(MonitorStats.at.pressure, Math.floor(monitored.pressure * 100));
    } catch (error) {
      stats.increment(MonitorStats.at.failed_updates);
      const failure = messageOf(error);
      if (failure !== monitored.lastFailure) logger.warning(`resource monitor '${name}' cannot be read: ${failure}`);
      monitored.lastFailure = failure;
    }
  }

  #state(): OverloadState {
    return Object.fromEntries(this.#reactions.filter(({ value }) => value > 0).map(({ name, value }) => [name, value]));
  }
}

/** Returns whether the value has changed. The strongest trigger counts. */
function update(reaction: Reaction, pressures: ReadonlyMap<string, number>): boolean {
  let value = 0;
  for (const trigger of reaction.triggers) {
    const pressure = pressures.get(trigger.name!);
    if (pressure !== undefined) value = Math.max(value, triggerState(trigger, pressure));
  }
  if (value === reaction.value) return false;
  if ((value === 1) !== (reaction.value === 1)) {
    logger.info(`overload action ${reaction.name} became ${value === 1 ? 'active' : 'inactive'}`);
  }
  reaction.value = value;
  reaction.report(value);
  return true;
}

function percent(value: number): number {
  return Math.floor(Math.fround(value * 100));
}
