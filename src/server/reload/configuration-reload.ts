// Reloads the configuration: loads it again as the command line says, compares it with the running one, and applies it.

import { failureText, summary } from '../../admin/config-reload/reload-text.js';
import type { ReloadRequest, ReloadView } from '../../admin/config-reload/reload-view.js';
import { isThreadShortage, messageOf } from '../../common/errors/errors.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { LoadResult } from '../../config/load/load.js';
import { redact, type SensitiveValue } from '../../config/schema/sensitive.js';
import { formatProblem, formatProblems, problemOf } from '../../config/text/problem.js';
import { getLogger } from '../../log/logger.js';
import { ConfigReloadStats } from '../../stats/layouts/config-reload.js';
import type { Server } from '../server.js';
import { ChangeFailure } from './carry-out.js';
import type { Comparison, Configuration, ReloadPlan } from './comparison/comparison.js';
import { reloadParts } from './reload-parts.js';

/** The running configuration and the time when it was loaded. */
export interface LoadedConfiguration extends Configuration {
  readonly loadedAt: Date;
}

/** When to retry a failed reload, which may succeed without another change of the file. */
export type NextTry = 'soon' | 'later' | undefined;

type Loaded = Extract<LoadResult, { readonly ok: true }>;

const logger = getLogger('config');

export class ConfigurationReload {
  readonly #server: Server;
  readonly #loadConfiguration: () => Promise<LoadResult>;
  #running: LoadedConfiguration;
  #current: Promise<ReloadView> | undefined;
  /** The last failure to read or apply the configuration, as logged. */
  #failure: string | undefined;

  /** `loadConfiguration` loads what the command line names, as at the start. */
  constructor(server: Server, loadConfiguration: () => Promise<LoadResult>, running: LoadedConfiguration) {
    this.#server = server;
    this.#loadConfiguration = loadConfiguration;
    this.#running = running;
  }

  get running(): LoadedConfiguration {
    return this.#running;
  }

  /** Resolves with the outcome; with 'busy', without any effect, while another reload is in progress. */
  run(request: ReloadRequest): Promise<ReloadView> {
    if (this.#current !== undefined) return Promise.resolve({ outcome: 'busy' });
    return this.#begin(request);
  }

  /**
   * Reloads after those in progress; `begun` is called before anything is read. Waits for a child process that is starting, and
   * reloads again if one has started meanwhile. Does nothing once a child has taken over. Resolves with when to retry.
   */
  async runNext(request: ReloadRequest, begun: () => void): Promise<NextTry> {
    for (;;) {
      while (this.#current !== undefined) await this.#current.catch(() => {});
      const { takeOver } = this.#server.primary;
      if (takeOver.isBeginning) {
        logger.info('the configuration is reloaded once the child process has ended, unless it takes over');
        await takeOver.settled;
        continue;
      }
      if (takeOver.isDone) return undefined;
      begun();
      const view = await this.#begin(request);
      if (view.outcome !== 'failed' || !view.isTakenOver) return nextTry(view);
    }
  }

  #begin(request: ReloadRequest): Promise<ReloadView> {
    this.#current = this.#reload(request).finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }

  async #reload(request: ReloadRequest): Promise<ReloadView> {
    const { store } = this.#server.primary;
    const stats = store.scope(store.addScope('config_reload.', ConfigReloadStats));
    const { at } = ConfigReloadStats;
    if (!request.applies) {
      stats.increment(at.dry_run);
      return this.#dryRun();
    }
    stats.increment(at.update_attempt);
    const view = await this.#apply(request);
    switch (view.outcome) {
      case 'applied':
        stats.increment(at.update_success);
        stats.set(at.update_time, this.#running.loadedAt.getTime());
        break;
      case 'unread':
        stats.increment(at.update_failure);
        break;
      case 'failed':
        if (!view.isTakenOver) stats.increment(at.update_failure);
        break;
      default:
        stats.increment(at.update_rejected);
    }
    const failure = 'why' in view ? view.why : undefined;
    if (request.isRepeated !== true || failure === undefined || failure !== this.#failure) logOutcome(view);
    this.#failure = failure;
    return view;
  }

  /**
   * Loads the configuration, or returns why that failed. The failure of the loading thread counts as an invalid configuration.
   */
  async #load(): Promise<Loaded | ReloadView> {
    try {
      const loaded = await this.#loadConfiguration();
      if (loaded.ok) return loaded;
      const { errors, isUnreadable, warnings } = loaded;
      return isUnreadable
        ? { outcome: 'unread', why: formatProblems(errors) }
        : { outcome: 'invalid', errors, warnings };
    } catch (error) {
      const why = messageOf(error);
      if (isThreadShortage(error) || isDescriptorShortage(error)) return { outcome: 'unread', why };
      return { outcome: 'invalid', errors: [problemOf('', why)], warnings: [] };
    }
  }

  async #dryRun(): Promise<ReloadView> {
    const loaded = await this.#load();
    if ('outcome' in loaded) return loaded;
    const { difference } = await this.#compare(loaded);
    return { outcome: 'possible', difference, warnings: loaded.warnings };
  }

  async #apply({ isPartial }: ReloadRequest): Promise<ReloadView> {
    const loaded = await this.#load();
    if ('outcome' in loaded) return loaded;
    const { warnings } = loaded;
    const { difference, plan, result } = await this.#compare(loaded);
    const { takeOver } = this.#server.primary;
    if (difference.restart.length > 0 && !isPartial) return { outcome: 'needs-restart', difference, warnings };
    const why = this.#server.obstacleToReload ?? (await this.#clusterObstacle(plan, result.bootstrap));
    if (why !== undefined) {
      const isTakenOver = takeOver.isBeginning || takeOver.isDone;
      return { outcome: 'failed', why, isUndone: true, isTakenOver, difference, warnings };
    }
    try {
      await this.#server.reload(plan, result.bootstrap);
    } catch (error) {
      const isUndone = !(error instanceof ChangeFailure) || error.isUndone;
      const isTakenOver = takeOver.isDone;
      return { outcome: 'failed', why: messageOf(error), isUndone, isTakenOver, difference, warnings };
    }
    this.#running = { ...result, loadedAt: new Date() };
    return { outcome: 'applied', difference, warnings };
  }

  /** Returns why clusters cannot be changed; undefined when they can. */
  async #clusterObstacle({ clusters, removedClusters }: ReloadPlan, next: Bootstrap): Promise<string | undefined> {
    if (clusters.length + removedClusters.length === 0) return undefined;
    const { namesStillInUse, sourcesStillInUse } = await reloadParts();
    return namesStillInUse(removedClusters, next) ?? sourcesStillInUse(this.#server.configuration.namedSources(), next);
  }

  async #compare({ bootstrap, sensitive }: Loaded): Promise<Comparison> {
    const { compareConfigurations } = await reloadParts();
    return compareConfigurations(this.#running, configuration(bootstrap, sensitive));
  }
}

export function configuration(bootstrap: Bootstrap, sensitive: readonly SensitiveValue[]): Configuration {
  return { bootstrap, shown: redact(bootstrap, sensitive) };
}

/** A failure to apply, such as an address in use, is likely to last longer than a failure to read. */
function nextTry(view: ReloadView): NextTry {
  if (view.outcome === 'unread') return 'soon';
  return view.outcome === 'failed' && view.isUndone ? 'later' : undefined;
}

/** Logs the outcome. */
function logOutcome(view: ReloadView): void {
  if (view.outcome === 'busy') return;
  if (view.outcome === 'unread') return logger.error(`configuration not reloaded: ${view.why}`);
  for (const warning of view.warnings) logger.warning(formatProblem(warning));
  switch (view.outcome) {
    case 'invalid':
      logger.error(`configuration not reloaded, it is refused:\n${formatProblems(view.errors)}`);
      break;
    case 'failed':
      if (view.isTakenOver) logger.info('configuration not reloaded: another process takes over from this one');
      else logger.error(`configuration not reloaded: ${failureText(view)}: ${view.why}`);
      break;
    case 'needs-restart': {
      const fields = view.difference.restart.map(({ path }) => path).join(', ');
      logger.error(`configuration not reloaded, a part of it needs a restart: ${fields}`);
      break;
    }
    case 'applied':
      logger.info(`configuration reloaded: ${summary(view.difference)}`);
  }
}
