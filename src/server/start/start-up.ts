// The order in which a server comes up, and what it waits for on the way (FACTS §2.12):
//
//   PRE_INITIALIZING  clusters that need no other → layers of runtime → clusters whose hosts a management server knows → CDS
//   INITIALIZING      listeners of the bootstrap and LDS, with what they need
//   LIVE              workers accept
//
// Whoever may wait for ever has to bound it: targets end with initial_fetch_timeout at the latest.

import { getLogger } from '../../log/logger.js';
import { InitManager } from '../init/init-manager.js';
import { ServerState } from '../state.js';

/** Each begins something and adds what is to be waited for; the next one is called when all of that is ready. */
export interface StartSteps {
  /** Clusters of the bootstrap that find their hosts by themselves. */
  startPrimaryClusters(init: InitManager): void;
  /** Layers of runtime that come from a management server; the clusters to reach it are there. */
  startRuntimeLayers(init: InitManager): void;
  /** The other clusters of the bootstrap. */
  startSecondaryClusters(init: InitManager): void;
  /** CDS, until the clusters of its first update are there; undefined when it is not configured. */
  readonly startClusterDiscovery: ((init: InitManager) => void) | undefined;
  /** All clusters are there. */
  clustersInitialized(): void;
  /** Listeners of the bootstrap. Throws ListenError. */
  startListeners(init: InitManager): void;
  /** LDS, until the listeners of its first update are there; undefined when it is not configured. */
  readonly startListenerDiscovery: ((init: InitManager) => void) | undefined;
  /** Resolves when the workers accept. */
  startWorkers(): Promise<void>;
  entered(state: ServerState): void;
}

const logger = getLogger('main');

export class StartUp {
  readonly #steps: StartSteps;
  readonly #ended: AbortSignal;
  #waitingFor: InitManager | undefined;

  /** `ended`: the server is shut down, and nobody waits any more. */
  constructor(steps: StartSteps, ended: AbortSignal) {
    this.#steps = steps;
    this.#ended = ended;
  }

  /** What is waited for now; undefined when that is nothing, or nothing with a name. */
  get waitingFor(): InitManager | undefined {
    return this.#waitingFor;
  }

  /** Resolves when the server is live, or has ended before. Rejects as the steps do. */
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
    if (!this.#ended.aborted) steps.entered(ServerState.Live);
  }

  async #wait(name: string, begin: (init: InitManager) => void): Promise<void> {
    if (this.#ended.aborted) return;
    const init = new InitManager(name);
    begin(init);
    this.#waitingFor = init;
    await init.whenReady(this.#ended);
    this.#waitingFor = undefined;
  }
}
