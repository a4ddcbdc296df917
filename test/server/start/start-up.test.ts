// The order of a start: each step waits for the targets of the one before, and nothing waits once the server has ended.

import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import type { InitTarget } from '../../../src/server/init/init-manager.js';
import { type StartSteps, StartUp } from '../../../src/server/start/start-up.js';
import { STATE_NAMES } from '../../../src/server/state.js';

/** Steps that record their names, and wait for the targets in `waits` until the test marks these ready. */
class Steps implements StartSteps {
  readonly seen: string[] = [];
  readonly targets = new Map<string, InitTarget>();
  readonly #waits: readonly string[];
  /** Steps that wait only for files. */
  readonly #local: readonly string[];

  constructor(waits: readonly string[], local: readonly string[] = []) {
    this.#waits = [...waits, ...local];
    this.#local = local;
  }

  #step(name: string): StartSteps['startPrimaryClusters'] {
    return (init) => {
      this.seen.push(name);
      if (this.#waits.includes(name)) this.targets.set(name, init.add(name, this.#local.includes(name)));
    };
  }

  readonly startPrimaryClusters = this.#step('primary');
  readonly startRuntimeLayers = this.#step('runtime');
  readonly startSecondaryClusters = this.#step('secondary');
  readonly startClusterDiscovery = this.#step('CDS');
  readonly startListeners = this.#step('listeners');
  readonly startListenerDiscovery = this.#step('LDS');
  clustersInitialized() {
    this.seen.push('clusters');
  }
  async startWorkers() {
    this.seen.push('workers');
  }
  async dispatching() {
    this.seen.push('dispatching');
  }
  entered(state: number) {
    this.seen.push(STATE_NAMES[state]!);
  }
}

t.test('steps run in order, and each waits for the targets of the one before', async (t) => {
  const steps = new Steps(['primary', 'runtime', 'secondary', 'CDS', 'listeners', 'LDS']);
  const startUp = new StartUp(steps, new AbortController().signal);
  const live = startUp.run();
  const expected = ['PRE_INITIALIZING'];
  for (const name of ['primary', 'runtime', 'secondary', 'CDS']) {
    await nextTurn();
    expected.push(name);
    if (name === 'primary') expected.push('dispatching');
    t.strictSame(steps.seen, expected);
    t.strictSame(startUp.waitingFor?.unreadyTargets, [name]);
    steps.targets.get(name)!.ready();
  }
  await nextTurn();
  expected.push('clusters', 'INITIALIZING', 'listeners', 'LDS');
  t.strictSame(steps.seen, expected);
  t.equal(startUp.waitingFor?.name, 'Server');
  t.strictSame(startUp.waitingFor?.unreadyTargets, ['listeners', 'LDS']);
  steps.targets.get('LDS')!.ready();
  await nextTurn();
  t.strictSame(startUp.waitingFor?.unreadyTargets, ['listeners']);
  steps.targets.get('listeners')!.ready();
  await live;
  t.strictSame(steps.seen, [...expected, 'workers', 'LIVE']);
  t.equal(startUp.waitingFor, undefined);
});

t.test('without remote targets, the main loop is reported after the workers', async (t) => {
  const steps = new Steps([], ['CDS', 'LDS']);
  const live = new StartUp(steps, new AbortController().signal).run();
  for (const name of ['CDS', 'LDS']) {
    await nextTurn();
    t.equal(steps.seen.at(-1), name);
    steps.targets.get(name)!.ready();
  }
  await live;
  t.strictSame(steps.seen.slice(-4), ['LDS', 'workers', 'LIVE', 'dispatching']);
});

t.test('the main loop is reported when a remote target joins local ones, and its failure ends the start', async (t) => {
  const steps = new Steps([], ['CDS']);
  let cds: { add(name: string): unknown } | undefined;
  const failing: StartSteps = {
    ...steps,
    startClusterDiscovery: (init) => {
      cds = init;
      steps.startClusterDiscovery(init);
    },
    clustersInitialized: () => steps.clustersInitialized(),
    startWorkers: () => steps.startWorkers(),
    entered: (state) => steps.entered(state),
    dispatching: () => Promise.reject(new Error('the admin address is in use')),
  };
  const live = new StartUp(failing, new AbortController().signal).run();
  live.catch(() => undefined);
  await nextTurn();
  t.equal(steps.seen.at(-1), 'CDS');
  cds!.add('a cluster of it');
  await t.rejects(live, { message: 'the admin address is in use' });
});

t.test('a server that ends stops waiting, and starts no further step', async (t) => {
  const steps = new Steps(['CDS']);
  const ended = new AbortController();
  const live = new StartUp(steps, ended.signal).run();
  await nextTurn();
  ended.abort();
  await live;
  t.strictSame(steps.seen, ['PRE_INITIALIZING', 'primary', 'runtime', 'secondary', 'CDS', 'dispatching']);
  steps.targets.get('CDS')!.ready();
  await nextTurn();
  t.equal(steps.seen.length, 6);
});

t.test('an exception in a step ends the start', async (t) => {
  const steps = new Steps([]);
  const failing: StartSteps = {
    ...steps,
    clustersInitialized: () => steps.clustersInitialized(),
    startWorkers: () => steps.startWorkers(),
    dispatching: () => steps.dispatching(),
    entered: (state) => steps.entered(state),
    startListeners: () => {
      throw new Error('the address is in use');
    },
  };
  await t.rejects(new StartUp(failing, new AbortController().signal).run(), { message: 'the address is in use' });
  t.notOk(steps.seen.includes('workers'));
});
