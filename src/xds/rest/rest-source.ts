// A subscription to a management server over REST: posts a DiscoveryRequest as JSON again and again, and delivers the
// DiscoveryResponses.

import { messageOf } from '../../common/errors/errors.js';
import { Random } from '../../common/random.js';
import { byteText } from '../../common/text/byte-text.js';
import { headerKey } from '../../common/text/header-names.js';
import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { StepQueue } from '../../common/time/step-queue.js';
import type { ApiConfigSource, Node } from '../../config/generated/api.js';
import { type HeaderBlock, Method } from '../../http/headers/header-block.js';
import { getLogger } from '../../log/logger.js';
import type { StatsStore } from '../../stats/store.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import type { ClusterReference } from '../../upstream/cluster-manager.js';
import { HttpCall, type HttpCallAnswer } from '../../upstream/http-calls/http-call.js';
import { rejectionText } from '../rejection-text.js';
import { RESOURCE_MESSAGES, type ResourceType } from '../resource.js';
import { type ReadFile, ResourceFileError, type ResourceReader } from '../resource-reader.js';
import {
  includesName,
  type ResourceNames,
  type Subscription,
  type SubscriptionRequest,
  stepsOf,
} from '../subscription.js';
import { SubscriptionStats } from '../subscription-stats.js';

/** Default initial_fetch_timeout. */
const DEFAULT_FETCH_MS = 15_000;
const DEFAULT_REQUEST_MS = 1000;
/** Lower limit of refresh_delay: each round sends the whole node. */
const MIN_REFRESH_MS = 10;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const OK = 200;
const NOT_MODIFIED = 304;

const PATHS: { readonly [type in ResourceType]: string } = {
  listener: 'listeners',
  cluster: 'clusters',
  endpoints: 'endpoints',
  route: 'routes',
  'scoped-route': 'scoped-routes',
  // Exists as delta only.
  'virtual-host': 'virtual-hosts',
  runtime: 'runtime',
  'extension-config': 'extension_configs',
  secret: 'secrets',
};

const logger = getLogger('config');

export interface RestSourceOptions {
  readonly store: StatsStore;
  readonly calls: CallingThread;
  /** The node that is sent to management servers. */
  readonly node: Node;
  readonly reader: ResourceReader;
  /** Reports an unexpected exception that was caught. */
  readonly failed: (what: string, error: unknown) => void;
}

export class RestSource implements Subscription {
  readonly #request: SubscriptionRequest;
  readonly #options: RestSourceOptions;
  readonly #cluster: ClusterReference;
  readonly #host: string;
  readonly #path: string;
  readonly #refreshMs: number;
  readonly #timeoutMs: number;
  readonly #random = new Random();
  readonly #stats: SubscriptionStats;
  readonly #delivery = new StepQueue();
  #names: ResourceNames;
  #version = '';
  /** A request or the delivery of its response is in progress; `#mustRepeat`: its names are stale. */
  #isBusy = false;
  #mustRepeat = false;
  #call: HttpCall | undefined;
  #timer: NodeJS.Timeout | undefined;
  #fetchTimer: NodeJS.Timeout | undefined;
  /** The watcher has got an update or fetchTimedOut(). */
  #isNotified = false;
  #isClosed = false;
  /** The last warning, which is not repeated before the next success: a server may fail several times a second. */
  #warned = '';

  /** `api` has passed its checks. The watcher is never called before this returns. */
  constructor(request: SubscriptionRequest, api: ApiConfigSource, options: RestSourceOptions) {
    this.#request = request;
    this.#options = options;
    this.#names = request.names;
    const [cluster] = api.cluster_names!;
    this.#cluster = options.calls.reference(cluster!);
    this.#host = byteText(cluster!);
    this.#path = `/v3/discovery:${PATHS[request.type]}`;
    this.#refreshMs = Math.max(MIN_REFRESH_MS, durationMs(api.refresh_delay!));
    this.#timeoutMs = Math.min(MAX_TIMER_MS, durationMs(api.request_timeout, DEFAULT_REQUEST_MS));
    this.#stats = new SubscriptionStats(options.store, request.statPrefix, request.type);
    const fetchMs = Math.min(MAX_TIMER_MS, durationMs(request.source.initial_fetch_timeout, DEFAULT_FETCH_MS));
    if (fetchMs > 0) this.#fetchTimer = setTimeout(() => this.#fetchTimedOut(), fetchMs);
    this.#timer = setTimeout(() => this.#fetch(), 0);
  }

  /** A request with the new names follows at once, or after the one in progress. */
  setNames(names: ResourceNames): void {
    this.#names = names;
    this.#mustRepeat = this.#isBusy;
    if (!this.#isBusy) this.#schedule(0);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#fetchTimer);
    this.#call?.cancel();
    this.#delivery.close();
    this.#options.reader.close();
    this.#stats.close();
  }

  /** Requests again after refresh_delay, which a random part of it extends, as in Envoy. */
  #schedule(delayMs = this.#mustRepeat ? 0 : this.#refreshMs * (1 + this.#random.fraction())): void {
    this.#isBusy = this.#mustRepeat = false;
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fetch(), Math.min(MAX_TIMER_MS, delayMs));
  }

  #fetch(): void {
    // Without names, there is nothing to request until setNames().
    if (this.#names !== '*' && this.#names.size === 0) return;
    this.#isBusy = true;
    this.#stats.attempt();
    let isOver = false;
    const over = () => {
      isOver = true;
      this.#call = undefined;
    };
    try {
      const call = HttpCall.start(
        this.#options.calls,
        this.#cluster.current,
        {
          writeHead: (head) => this.#writeHead(head),
          body: [Buffer.from(JSON.stringify(this.#discoveryRequest()))],
          timeoutMs: this.#timeoutMs,
          maxAnswerBytes: MAX_ANSWER_BYTES,
        },
        {
          onAnswer: (answer) => {
            over();
            this.#received(answer);
          },
          onFailure: (reason) => {
            over();
            this.#failed(reason);
          },
        },
      );
      if (!isOver) this.#call = call;
    } catch (error) {
      this.#failed(messageOf(error));
      this.#options.failed(`a request to ${this.#path} failed`, error);
    }
  }

  #writeHead(head: HeaderBlock): void {
    head.setMethod(Method.Post, 'POST');
    head.setPath(this.#path);
    head.add(HOST, this.#host);
    head.add(CONTENT_TYPE, 'application/json');
    head.add(INTERNAL, 'true');
    head.add(FORWARDED_FOR, this.#options.calls.ip);
    head.add(EXPECTED_TIMEOUT, String(Math.floor(this.#timeoutMs)));
  }

  #discoveryRequest(): object {
    const names = this.#names === '*' ? [] : [...this.#names].filter((name) => name !== '*');
    return {
      ...(this.#version === '' ? {} : { version_info: this.#version }),
      node: this.#options.node,
      ...(names.length === 0 ? {} : { resource_names: names }),
      type_url: `type.googleapis.com/${RESOURCE_MESSAGES[this.#request.type]}`,
    };
  }

  #received({ body, status }: HttpCallAnswer): void {
    if (status === NOT_MODIFIED) return this.#schedule();
    if (status !== OK) return this.#failed(`status ${status}`);
    this.#options.reader.readText(this.#request.type, body, `the response of ${this.#host} to ${this.#path}`).then(
      (content) => this.#deliver(content),
      (error: unknown) => {
        if (this.#isClosed) return;
        if (error instanceof ResourceFileError) return this.#reject(error.message);
        this.#options.failed(`a response to ${this.#path} was not read`, error);
        this.#failed(messageOf(error));
      },
    );
  }

  /** There was no response. What the subscriber has stays in use. */
  #failed(reason: string): void {
    if (this.#isClosed) return;
    this.#stats.failure();
    this.#warn(`REST update for ${this.#path} failed: ${reason}`);
    this.#schedule();
  }

  #reject(details: string): void {
    this.#stats.rejected();
    this.#warn(`REST config for ${this.#path} rejected: ${rejectionText([{ name: '', details }])}`);
    this.#schedule();
    this.#proceedWithout();
  }

  #warn(text: string): void {
    if (text !== this.#warned) logger.warning(text);
    this.#warned = text;
  }

  async #deliver(content: ReadFile): Promise<void> {
    if (this.#isClosed) return;
    this.#isNotified = true;
    clearTimeout(this.#fetchTimer);
    try {
      await this.#delivery.run(this.#update(content));
    } catch (error) {
      this.#options.failed(`an update of ${this.#request.statPrefix} failed`, error);
    }
    this.#schedule();
  }

  *#update({ refused, resources, version }: ReadFile): Generator<void, void> {
    const beganMs = performance.now();
    const isWanted = ({ name }: { readonly name: string }) => name === '' || includesName(this.#names, name);
    const bad = refused.filter(isWanted);
    const update = { version, isComplete: true, resources: resources.filter(isWanted), refused: bad, removed: [] };
    const rejections = yield* stepsOf(this.#request.watcher.update(update));
    if (this.#isClosed) return;
    const rejected = [...bad, ...rejections];
    if (rejected.length === 0) {
      this.#version = version;
      this.#warned = '';
      return this.#stats.success(version, performance.now() - beganMs);
    }
    this.#stats.rejected();
    this.#warn(`REST config for ${this.#path} rejected: ${rejectionText(rejected)}`);
  }

  #fetchTimedOut(): void {
    if (this.#isNotified || this.#isClosed) return;
    this.#stats.fetchTimedOut();
    logger.warning(`REST config: initial fetch timeout for ${this.#path}`);
    this.#proceedWithout();
  }

  #proceedWithout(): void {
    if (this.#isNotified) return;
    this.#isNotified = true;
    clearTimeout(this.#fetchTimer);
    try {
      this.#request.watcher.fetchTimedOut();
    } catch (error) {
      this.#options.failed(`the subscriber of ${this.#request.statPrefix} cannot proceed`, error);
    }
  }
}

const HOST = headerKey('host');
const CONTENT_TYPE = headerKey('content-type');
const INTERNAL = headerKey('x-envoy-internal');
const FORWARDED_FOR = headerKey('x-forwarded-for');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
