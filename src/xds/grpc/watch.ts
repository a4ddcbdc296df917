// One subscription on a stream: its watcher, its stats, and the time it waits for a first update.

import { messageOf } from '../../common/errors/errors.js';
import { shownName } from '../../common/text/shown.js';
import { durationMs } from '../../common/time/duration.js';
import { LONGEST_TIMER_MS } from '../../common/time/longest-timer.js';
import { PatientTimeout } from '../../common/time/patient-timeout.js';
import { getLogger } from '../../log/logger.js';
import type { RefusedResource, Update } from '../resource.js';
import {
  type Rejection,
  type ResourceNames,
  type StepwiseUpdate,
  type SubscriptionRequest,
  stepsOf,
} from '../subscription.js';
import { SubscriptionStats } from '../subscription-stats.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { typeUrlOf } from './services.js';

/** Of what configures no initial_fetch_timeout. */
const DEFAULT_FETCH_MS = 15_000;
const LONGEST_TEXT_CHARS = 4096;

const logger = getLogger('config');

export class Watch {
  names: ResourceNames;
  /** Names that were asked for since it was last told what is known of them. */
  fresh: ResourceNames;
  readonly #request: SubscriptionRequest;
  readonly #context: GrpcSourcesContext;
  readonly #stats: SubscriptionStats;
  #timer: PatientTimeout | undefined;
  /** It has got an update, or knows that none has come. */
  #isTold = false;
  #isClosed = false;

  /** `handled` resolves when everything that has come is handled, or after so long. */
  constructor(request: SubscriptionRequest, context: GrpcSourcesContext, handled: (mostMs: number) => Promise<void>) {
    this.names = request.names;
    this.fresh = request.names;
    this.#request = request;
    this.#context = context;
    this.#stats = new SubscriptionStats(context.store, request.statPrefix, request.type);
    this.#stats.attempt();
    const { initial_fetch_timeout: timeout } = request.source;
    const timeoutMs = Math.min(LONGEST_TIMER_MS, durationMs(timeout, DEFAULT_FETCH_MS));
    if (timeoutMs === 0) return;
    // A response that is being read has come: that it takes longer, once more its time at most, is no fault of the server.
    this.#timer = new PatientTimeout(() => void handled(timeoutMs).then(() => this.#fetchTimedOut()), timeoutMs);
  }

  setNames(names: ResourceNames): void {
    const { names: before, fresh } = this;
    if (names === '*') this.fresh = before === '*' ? fresh : '*';
    else if (before === '*') this.fresh = names;
    else this.fresh = new Set([...names].filter((name) => !before.has(name) || (fresh !== '*' && fresh.has(name))));
    this.names = names;
    this.#stats.attempt();
  }

  /** Gives it an update, in the steps that the watcher takes; returns what is rejected of it. */
  *update(update: Update): StepwiseUpdate {
    this.#timer?.clear();
    this.#isTold = true;
    this.#stats.attempt();
    const beganMs = performance.now();
    const rejections = yield* this.#tell(update);
    // What it was told may have ended it.
    if (this.#isClosed) return rejections;
    const refused = [...update.refused, ...rejections];
    if (refused.length === 0) {
      this.#stats.success(update.version, performance.now() - beganMs);
      logger.debug(
        `gRPC config for ${this.#typeUrl} accepted with ${update.resources.length} resources with version ${shownName(update.version)}`,
      );
    } else {
      this.#stats.rejected();
      logger.warning(`gRPC config for ${this.#typeUrl} rejected: ${rejectionText(refused)}`);
    }
    return rejections;
  }

  /** A whole response is refused: not even its resources can be told. Whoever has waited for it goes on without. */
  refuse(details: string): void {
    this.#timer?.clear();
    this.#stats.attempt();
    this.#stats.rejected();
    logger.warning(`gRPC config for ${this.#typeUrl} rejected: ${details}`);
    this.#goOn();
  }

  /** There is no stream. */
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

  *#tell(update: Update): StepwiseUpdate {
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
    if (this.#isTold || this.#isClosed) return;
    this.#stats.fetchTimedOut();
    this.#stats.attempt();
    logger.warning(`gRPC config: initial fetch timed out for ${this.#typeUrl}`);
    this.#goOn();
  }

  #goOn(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    try {
      this.#request.watcher.fetchTimedOut();
    } catch (error) {
      this.#context.failed(`what waited for ${this.#typeUrl} cannot go on`, error);
    }
  }
}

/** What is wrong, a line each; cut where it gets too long for logs and servers. */
export function rejectionText(rejections: readonly (Rejection | RefusedResource)[]): string {
  const text = rejections
    .map(({ name, details }) => (name === '' ? details : `${shownName(name)}: ${details}`))
    .join('\n');
  return text.length > LONGEST_TEXT_CHARS ? `${text.slice(0, LONGEST_TEXT_CHARS)}...(truncated)` : text;
}
