// The keys of one provider on a worker: local ones, or remote ones that are fetched when they are needed or ahead.

import type { JwtAuthnRemoteJwks, JwtProvider } from '../../../../config/generated/api.js';
import {
  type CallingThread,
  type Clock,
  compileCallRetries,
  durationMs,
  getLogger,
  type HeaderBlock,
  type HttpCallAnswer,
  type HttpTarget,
  headerKey,
  httpTarget,
  MAX_TIMER_MS,
  Method,
  messageOf,
  type RetryPolicy,
  type RunningCall,
  readDataSource,
  type Scope,
  shownName,
  startHttpCall,
  Timer,
  type Timers,
} from '../../../sdk.js';
import { type Keys, parseKeys } from './keys.js';
import { JwtStats } from './stats.js';

/** What waits for keys. */
export interface KeyWaiter {
  /** Called once, when the fetch has ended. */
  onKeys(): void;
}

export interface KeySource {
  /** The keys; undefined: they must be fetched first. */
  readonly keys: Keys | undefined;
  /** Waits for a fetch. */
  wait(waiter: KeyWaiter): void;
  /** The waiter waits no longer. */
  forget(waiter: KeyWaiter): void;
  close(): void;
}

/** What a source needs of its worker. */
export interface FetchContext {
  readonly calls: CallingThread;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly stats: Scope;
}

/** Creates the source of a provider that has passed its checks. */
export function keySourceOf(provider: JwtProvider, context: FetchContext): KeySource {
  const { local_jwks: local, remote_jwks: remote } = provider;
  if (remote !== undefined) return new RemoteKeys(remote, context);
  const keys = parseKeys(readDataSource(local!));
  if (typeof keys === 'string') throw new Error(keys);
  return { keys, wait() {}, forget() {}, close() {} };
}

const logger = getLogger('jwt');
const OK = 200;
const CACHE_MS = 600_000;
const FAILED_REFETCH_MS = 1000;
/** Fetched ahead by this much, so that no request finds expired keys. */
const AHEAD_MS = 5000;

/** As in Envoy, the conditions in the configuration do not count. */
export const RETRY_ON = '5xx,gateway-error,connect-failure,reset';

class RemoteKeys implements KeySource {
  readonly body = [];
  readonly timeoutMs: number;
  readonly #context: FetchContext;
  readonly #target: HttpTarget;
  readonly #cluster: string;
  readonly #cacheMs: number;
  readonly #isAhead: boolean;
  readonly #failedRefetchMs: number;
  readonly #retries: RetryPolicy | undefined;
  readonly #timer = new Timer<RemoteKeys>(this, (source) => source.#fetch());
  readonly #waiters = new Set<KeyWaiter>();
  #keys: Keys | undefined;
  #expiresMs = 0;
  #call: RunningCall | undefined;
  #isFetching = false;
  #isClosed = false;

  constructor(
    { async_fetch: ahead, cache_duration, http_uri, retry_policy }: JwtAuthnRemoteJwks,
    context: FetchContext,
  ) {
    this.#context = context;
    this.#target = httpTarget(http_uri!.uri!) as HttpTarget;
    this.#cluster = http_uri!.cluster!;
    this.timeoutMs = durationMs(http_uri!.timeout!);
    this.#retries = compileCallRetries(retry_policy, '', RETRY_ON);
    this.#cacheMs = durationMs(cache_duration, CACHE_MS);
    this.#isAhead = ahead !== undefined;
    this.#failedRefetchMs = Math.max(1, durationMs(ahead?.failed_refetch_duration, FAILED_REFETCH_MS));
    // The clusters are those of the running configuration only after this turn.
    if (this.#isAhead) context.timers.reschedule(this.#timer, 1);
  }

  get keys(): Keys | undefined {
    // Keys that are fetched ahead stay in use until newer ones arrive.
    return this.#isAhead || this.#context.clock.monotonicMs < this.#expiresMs ? this.#keys : undefined;
  }

  wait(waiter: KeyWaiter): void {
    this.#waiters.add(waiter);
    this.#fetch();
  }

  forget(waiter: KeyWaiter): void {
    this.#waiters.delete(waiter);
    if (this.#isClosed && this.#waiters.size === 0) this.#cancel();
  }

  /** Requests under way, which this configuration applies to, get the keys all the same. */
  close(): void {
    this.#isClosed = true;
    this.#context.timers.cancel(this.#timer);
    if (this.#waiters.size === 0) this.#cancel();
  }

  #cancel(): void {
    this.#call?.cancel();
    this.#call = undefined;
    this.#isFetching = false;
  }

  #fetch(): void {
    if (this.#isFetching) return;
    const { calls } = this.#context;
    this.#isFetching = true;
    try {
      const call = startHttpCall(calls, calls.reference(this.#cluster), this, this, this.#retries);
      // It may have ended already.
      if (call !== undefined && this.#isFetching) this.#call = call;
    } catch (error) {
      // The call has ended without an event. Unanswered, its waiters and all later ones would wait forever.
      this.onFailure(messageOf(error));
    }
  }

  writeHead(head: HeaderBlock): void {
    head.setMethod(Method.Get, 'GET');
    head.setPath(this.#target.path);
    head.add(HOST, this.#target.host);
    head.add(USER_AGENT, 'baton');
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    if (status !== OK) return this.onFailure(`its status is ${status}`);
    const keys = parseKeys(body);
    if (typeof keys === 'string') return this.onFailure(keys);
    this.#context.stats.increment(JwtStats.at.jwks_fetch_success);
    this.#keys = keys;
    this.#expiresMs = this.#context.clock.monotonicMs + this.#cacheMs;
    this.#ended(this.#cacheMs > 2 * AHEAD_MS ? this.#cacheMs - AHEAD_MS : this.#cacheMs);
  }

  onFailure(reason: string): void {
    this.#context.stats.increment(JwtStats.at.jwks_fetch_failed);
    logger.warning(`no keys from cluster '${shownName(this.#cluster)}': ${reason}`);
    this.#ended(this.#failedRefetchMs);
  }

  #ended(nextMs: number): void {
    this.#isFetching = false;
    this.#call = undefined;
    if (this.#isAhead && !this.#isClosed) this.#context.timers.reschedule(this.#timer, Math.min(nextMs, MAX_TIMER_MS));
    this.#notify();
  }

  #notify(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.onKeys();
  }
}

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
