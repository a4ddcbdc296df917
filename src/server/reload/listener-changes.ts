// The listener changes of a reload: all new versions are bound and ready before any is used.

import { randomUUID } from 'node:crypto';
import { withinMs } from '../../common/time/within-ms.js';
import { accepted } from '../../xds/dynamic-state.js';
import type { ListenerPlan, ListenerSet } from '../listeners/listener-set.js';
import type { ListenerSpec } from '../listeners/version/primary-listener.js';
import type { Change } from './carry-out.js';
import type { PlannedListener, ReloadPlan } from './comparison/comparison.js';

export interface ReloadedListeners {
  readonly listeners: Pick<ListenerSet, 'byName' | 'plan' | 'planRoutes'>;
  /** Aborted when the server ends. */
  readonly ended: AbortSignal;
  /** Resolves when all workers run what was published; rejects when one cannot. */
  settle(): Promise<void>;
}

/** Limit for new versions to wait for routes and other targets. */
const WARMING_MS = 60_000;

export class ListenerChange implements Change {
  readonly #server: ReloadedListeners;
  readonly #set: readonly ListenerSpec[];
  /** The previous versions of listeners that are changed or removed. */
  readonly #previous: readonly ListenerSpec[];
  readonly #removed: readonly string[];
  readonly #places: ReadonlyMap<number, number>;
  #plan: ListenerPlan | undefined;

  constructor({ listeners, places, removedListeners }: ReloadPlan, server: ReloadedListeners) {
    const known = staticSpecs(server.listeners);
    const removed = removedListeners.flatMap((number) => known.get(number) ?? []);
    this.#server = server;
    this.#set = listeners.map((listener) => specOf(listener, known));
    this.#previous = [
      ...listeners.flatMap(({ before }) => (before === undefined ? [] : (known.get(before) ?? []))),
      ...removed,
    ];
    this.#removed = removed.map(({ name }) => name);
    this.#places = places;
  }

  async prepare(): Promise<void> {
    this.#plan = await prepared(this.#set, this.#removed, this.#server);
  }

  async commit(): Promise<void> {
    const { listeners, settle } = this.#server;
    renumber(listeners, this.#places);
    await applied(this.#plan!, settle);
  }

  discard(): void {
    this.#plan?.discard();
  }

  async undo(): Promise<void> {
    const { listeners, settle } = this.#server;
    const known = new Set(this.#previous.map(({ name }) => name));
    const added = this.#set.flatMap(({ name }) => (known.has(name) ? [] : [name]));
    const plan = await prepared(this.#previous, added, this.#server);
    renumber(listeners, new Map(Array.from(this.#places, ([before, after]) => [after, before])));
    await applied(plan, settle);
  }
}

/** Changes routes inside connection managers: new requests use them, and no connection ends. */
export class RouteChange implements Change {
  readonly #server: ReloadedListeners;
  readonly #set: readonly ListenerSpec[];
  readonly #previous: readonly ListenerSpec[];
  #apply: (() => void) | undefined;

  constructor({ routes }: ReloadPlan, server: ReloadedListeners) {
    const known = staticSpecs(server.listeners);
    this.#server = server;
    this.#set = routes.map((listener) => specOf(listener, known));
    this.#previous = routes.map(({ before, number }) => ({ ...known.get(before!)!, number }));
  }

  prepare(): void {
    this.#apply = this.#server.listeners.planRoutes(this.#set);
  }

  commit(): Promise<void> {
    this.#apply!();
    return this.#server.settle();
  }

  discard(): void {}

  undo(): Promise<void> {
    this.#server.listeners.planRoutes(this.#previous)();
    return this.#server.settle();
  }
}

/** Returns the static listeners by their index in the bootstrap. */
function staticSpecs({ byName }: Pick<ListenerSet, 'byName'>): Map<number, ListenerSpec> {
  const specs = new Map<number, ListenerSpec>();
  for (const { spec } of byName.values()) {
    if (spec.isStatic && spec.number !== undefined) specs.set(spec.number, spec);
  }
  return specs;
}

/** Sets the listeners' new indexes in the bootstrap; `places` maps old ones to new ones. */
function renumber({ byName }: Pick<ListenerSet, 'byName'>, places: ReadonlyMap<number, number>): void {
  for (const listener of byName.values()) {
    const { isStatic, number } = listener.spec;
    if (isStatic && number !== undefined) listener.renumber(places.get(number));
  }
}

/** Applies the plan. Rejects when a part of it cannot be used. */
async function applied(plan: ListenerPlan, settle: ReloadedListeners['settle']): Promise<void> {
  const applied = plan.apply();
  await settle();
  const [failure] = await applied;
  if (failure !== undefined) throw failure;
}

async function prepared(
  set: readonly ListenerSpec[],
  removed: readonly string[],
  { ended, listeners }: ReloadedListeners,
): Promise<ListenerPlan> {
  const plan = listeners.plan({ isStatic: true, set, removed });
  try {
    const leftOut = set.find(
      ({ config, name }) => !plan.names.includes(name) && listeners.byName.get(name)?.config !== config,
    );
    if (leftOut !== undefined) {
      const direction = leftOut.config.traffic_direction ?? 'UNSPECIFIED';
      throw new Error(
        `listener '${leftOut.name}' cannot be changed: listeners in the traffic direction ${direction} are stopped`,
      );
    }
    await withinMs(plan.whenReady(ended), WARMING_MS, `listeners are not ready within ${WARMING_MS / 1000} s`);
    ended.throwIfAborted();
    return plan;
  } catch (error) {
    plan.discard();
    throw error;
  }
}

/** `known`: static listeners by index. A listener without a name keeps its generated one. */
function specOf(
  { before, config, number, shown }: PlannedListener,
  known: ReadonlyMap<number, ListenerSpec>,
): ListenerSpec {
  const previous = before === undefined ? undefined : known.get(before);
  const name = previous?.name ?? (config.name || randomUUID());
  return { name, config, isStatic: true, number, shown, state: accepted({ version: '' }) };
}
