// One subscription on a stream: its watcher, its stats, and its timeout for the first update.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { PatientTimeout } from '../../common/time/patient-timeout.js';
import { getLogger } from '../../log/logger.js';
import { rejectionText } from '../rejection-text.js';
import type { Update } from '../resource.js';
import { type ResourceNames, type StepwiseUpdate, type SubscriptionRequest, stepsOf } from '../subscription.js';
import { SubscriptionStats } from '../subscription-stats.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { typeUrlOf } from './services.js';

/** Default initial_fetch_timeout. */
const DEFAULT_FETCH_MS = 15_000;

const logger = getLogger('config');

export class Watch {
  names: ResourceNames;
  /** Names subscribed since known resources were last delivered to it. */
  fresh: ResourceNames;
  /** Names unsubscribed since then, which may be subscribed again. */
  readonly lapsed = new Set<string>();
  readonly #request: SubscriptionRequest;
  readonly #context: GrpcSourcesContext;
  readonly #stats: SubscriptionStats;
  #timer: PatientTimeout | undefined;
  /** It has got an update or fetchTimedOut(). */
  #isNotified = false;
  #isClosed = false;
  readonly #countsRefusals: boolean;

  /** `handled` resolves when everything that has arrived is handled, or after the given time. `countsRefusals`: see Protocol. */
  constructor(
    request: SubscriptionRequest,
    context: GrpcSourcesContext,
    handled: (maxMs: number) => Promise<void>,
    countsRefusals: boolean,
  ) {
    this.#countsRefusals = countsRefusals;
    this.names = request.names;
    this.fresh = request.names;
    this.#request = request;
    this.#context = context;
    this.#stats = new SubscriptionStats(context.store, request.statPrefix, request.type);
    this.#stats.attempt();
    const { initial_fetch_timeout: timeout } = request.source;
    const timeoutMs = Math.min(MAX_TIMER_MS, durationMs(timeout, DEFAULT_FETCH_MS));
    if (timeoutMs === 0) return;
    // A response in progress has arrived in time. It gets the same time again at most: slow reading is not the server's fault.
    this.#timer = new PatientTimeout(() => void handled(timeoutMs).then(() => this.#fetchTimedOut()), timeoutMs);
  }

  setNames(names: ResourceNames): void {
    const { names: before, fresh } = this;
    if (names === '*') this.fresh = before === '*' ? fresh : '*';
    else if (before === '*') this.fresh = names;
    else this.fresh = new Set([...names].filter((name) => !before.has(name) || (fresh !== '*' && fresh.has(name))));
    if (before !== '*' && names !== '*') for (const name of before) if (!names.has(name)) this.lapsed.add(name);
    this.names = names;
    this.#stats.attempt();
  }

  /** Delivers an update, in the watcher's steps. Returns the rejections. */
  *update(update: Update): StepwiseUpdate {
    this.#timer?.clear();
    this.#isNotified = true;
    this.#stats.attempt();
    const beganMs = performance.now();
    const rejections = yield* this.#notify(update);
    // The watcher may have closed it.
    if (this.#isClosed) return rejections;
    const refused = [...update.refused, ...rejections];
    if (refused.length === 0) {
      this.#stats.success(update.version, performance.now() - beganMs);
      logger.debug(
        `gRPC config for ${this.#typeUrl} accepted with ${update.resources.length} resources with version ${shownName(update.version)}`,
      );
    } else {
      if (this.#countsRefusals) this.#stats.attempt();
      this.#stats.rejected();
      logger.warning(`gRPC config for ${this.#typeUrl} rejected: ${rejectionText(refused)}`);
    }
    return rejections;
  }

  /**
   * Refuses a whole response, even the names of whose resources are unknown. A watcher that still waits proceeds without
   * resources.
   */
  refuse(details: string): void {
    this.#timer?.clear();
    this.#stats.attempt();
    this.#stats.rejected();
    logger.warning(`gRPC config for ${this.#typeUrl} rejected: ${details}`);
    this.#proceedWithout();
  }

  /** Called when the stream ended or could not be opened. */
  connectionFailed(): void {
    this.#stats.attempt();
    this.#stats.failure();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.clear();
    this.#stats.close();
  }

  get #typeUrl(): string {
    return typeUrlOf(this.#request.type);
  }

  *#notify(update: Update): StepwiseUpdate {
    try {
      return yield* stepsOf(this.#request.watcher.update(update));
    } catch (error) {
      this.#context.failed(`an update of ${this.#typeUrl} failed`, error);
      const details = `internal error: ${messageOf(error)}`;
      return update.resources.length === 0
        ? [{ name: '', details }]
        : update.resources.map(({ name }) => ({ name, details }));
    }
  }

  #fetchTimedOut(): void {
    if (this.#isNotified || this.#isClosed) return;
    this.#stats.fetchTimedOut();
    this.#stats.attempt();
    logger.warning(`gRPC config: initial fetch timed out for ${this.#typeUrl}`);
    this.#proceedWithout();
  }

  #proceedWithout(): void {
    if (this.#isNotified) return;
    this.#isNotified = true;
    try {
      this.#request.watcher.fetchTimedOut();
    } catch (error) {
      this.#context.failed(`the subscriber of ${this.#typeUrl} cannot proceed`, error);
    }
  }
}
