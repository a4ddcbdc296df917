// The order in which a server starts, and what each step waits for (FACTS §2.12):
//
//   PRE_INITIALIZING  clusters that need no other → runtime layers → clusters whose hosts a management server provides → CDS
//   INITIALIZING      listeners of the bootstrap and LDS, with their dependencies
//   LIVE              workers accept
//
// The main loop is reported, and the admin interface opened, when workers accept, or as soon as the start waits for more than
// files of this machine. So clients find the admin interface and the listeners at the same moment, as in Envoy, and management
// servers, health checks and DNS hold up the listeners alone.
//
// Every target bounds its own wait: it ends with initial_fetch_timeout at the latest.

import { setTimeout as delay } from 'node:timers/promises';
import { getLogger } from '../../log/logger.js';
import { InitManager } from '../init/init-manager.js';
import { ServerState } from '../state.js';

/** Each step starts something and adds its targets to `init`. The next step follows when all targets are ready. */
export interface StartSteps {
  /** Starts the bootstrap's clusters that need no other cluster to find their hosts. */
  startPrimaryClusters(init: InitManager): void;
  /** Starts runtime layers that come from a management server. The clusters to reach it are ready. */
  startRuntimeLayers(init: InitManager): void;
  /** Starts the other clusters of the bootstrap. */
  startSecondaryClusters(init: InitManager): void;
  /** Starts CDS and waits for the clusters of its first update; undefined without CDS. */
  readonly startClusterDiscovery: ((init: InitManager) => void) | undefined;
  /** Called when all clusters are ready. */
  clustersInitialized(): void;
  /** Starts the bootstrap's listeners. Throws ListenError. */
  startListeners(init: InitManager): void;
  /** Starts LDS and waits for the listeners of its first update; undefined without LDS. */
  readonly startListenerDiscovery: ((init: InitManager) => void) | undefined;
  /** Resolves when the workers accept connections. */
  startWorkers(): Promise<void>;
  /** Called once, when workers accept or the start waits for others. Resolves when the admin interface answers. */
  dispatching(): Promise<void>;
  entered(state: ServerState): void;
}

const logger = getLogger('main');

/** Work before the first step that takes longer does not hold up the admin interface. */
const SLOW_MS = 100;

export class StartUp {
  readonly #steps: StartSteps;
  readonly #ended: AbortSignal;
  #waitingFor: InitManager | undefined;
  #dispatching: Promise<void> | undefined;

  /** `ended`: aborted when the server shuts down, which ends every wait. */
  constructor(steps: StartSteps, ended: AbortSignal) {
    this.#steps = steps;
    this.#ended = ended;
  }

  /** The init manager in use; undefined when none is, or for a step without a name. */
  get waitingFor(): InitManager | undefined {
    return this.#waitingFor;
  }

  /** Resolves when the server is live, or ended earlier. Rejects when a step does. */
  async run(): Promise<void> {
    const steps = this.#steps;
    steps.entered(ServerState.PreInitializing);
    await this.#wait('Primary clusters', (init) => steps.startPrimaryClusters(init));
    await this.#wait('RTDS', (init) => steps.startRuntimeLayers(init));
    await this.#wait('Secondary clusters', (init) => steps.startSecondaryClusters(init));
    await this.#wait('Cluster discovery', (init) => {
      if (steps.startClusterDiscovery === undefined) return;
      logger.info('cm init: initializing cds');
      steps.startClusterDiscovery(init);
    });
    if (this.#ended.aborted) return;
    logger.info('cm init: all clusters initialized');
    steps.clustersInitialized();
    logger.info('all clusters initialized. initializing init manager');
    steps.entered(ServerState.Initializing);
    await this.#wait('Server', (init) => {
      steps.startListeners(init);
      steps.startListenerDiscovery?.(init);
    });
    if (this.#ended.aborted) return;
    logger.info('all dependencies initialized. starting workers');
    await steps.startWorkers();
    if (this.#ended.aborted) return;
    steps.entered(ServerState.Live);
    await this.#dispatch();
  }

  /**
   * Waits for work that precedes the steps: code of extensions, which may never finish. The admin interface answers when it takes
   * longer than a moment. Rejects when the work does.
   */
  async precede(work: Promise<void>): Promise<void> {
    const slow = new AbortController();
    const isSlow = delay(SLOW_MS, true, { signal: slow.signal }).catch(() => false);
    const mustWait = await Promise.race([work.then(() => false), isSlow]);
    slow.abort();
    if (mustWait && !this.#ended.aborted) await this.#dispatch();
    await work;
  }

  #dispatch(): Promise<void> {
    this.#dispatching ??= this.#steps.dispatching();
    return this.#dispatching;
  }

  async #wait(name: string, begin: (init: InitManager) => void): Promise<void> {
    if (this.#ended.aborted) return;
    const init = new InitManager(name);
    begin(init);
    this.#waitingFor = init;
    const ready = init.whenReady(this.#ended).then(() => true);
    const isReady = await Promise.race([ready, init.whenRemote().then(() => false)]);
    if (!isReady && !this.#ended.aborted) await this.#dispatch();
    await ready;
    this.#waitingFor = undefined;
  }
}
