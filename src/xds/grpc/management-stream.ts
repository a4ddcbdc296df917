// One stream to a management server: opens it, limits its request rate, and reopens it after a failure. Its owner handles the
// messages.

import { messageOf } from '../../common/errors/errors.js';
import { Random } from '../../common/random.js';
import { shownName } from '../../common/text/shown.js';
import { durationMs } from '../../common/time/duration.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import type { ApiConfigSource } from '../../config/generated/api.js';
import { breaksLine } from '../../config/schema/line-rules.js';
import { escaped } from '../../config/text/problem.js';
import type { GrpcCall } from '../../grpc/grpc-call.js';
import { GrpcChannel } from '../../grpc/grpc-channel.js';
import { type FaultDomain, failDomain } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { ControlPlaneStats } from '../../stats/layouts/xds.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import { BackOff } from './back-off.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { TokenBucket } from './token-bucket.js';

/** A message that violates the protocol: an error of the server, not of this process. */
export class UnreadableError extends Error {}

export interface StreamEvents {
  /** Called when a new stream is open, before any message. */
  opened(): void;
  /**
   * Handles a message; the next one waits until this resolves. Rejects with an UnreadableError for an invalid message. Any
   * rejection ends the stream.
   */
  received(message: Buffer): Promise<void>;
  /** Called when the stream has ended or could not be opened. A retry follows. */
  lost(): void;
  /** Number of pending requests. */
  readonly due: number;
  /** Returns the next pending request, encoded. */
  next(): Uint8Array;
}

/** As in Envoy, unless the service has a retry_policy. */
const BASE_INTERVAL_MS = 500;
const MAX_INTERVAL_MS = 30_000;
/** Default max_interval in multiples of base_interval. */
const INTERVALS = 10;
const DEFAULT_TOKENS = 100;
const DEFAULT_FILL_RATE = 10;

/** Limit of a response, unless the service sets another one: all clusters of a large mesh may be in one. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;
/** Above this, no request is added to those that the server has not read. */
const MAX_QUEUED_BYTES = 64 * 1024;

/** One stream. */
interface Attempt extends FaultDomain {
  /** Undefined if it could not begin. */
  call: GrpcCall | undefined;
}

const logger = getLogger('config');

export class ManagementStream {
  readonly #method: string;
  readonly #source: ApiConfigSource;
  readonly #context: GrpcSourcesContext;
  readonly #events: StreamEvents;
  readonly #scope: ScopeRef;
  readonly #stats: Scope;
  readonly #backOff: BackOff;
  readonly #bucket: TokenBucket | undefined;
  readonly #channel: GrpcChannel;
  /** Undefined without a stream. */
  #attempt: Attempt | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #drainTimer: NodeJS.Timeout | undefined;
  /** The last logged reason for a missing stream. */
  #lastFailure = '';
  #identifier = '';
  #isClosed = false;

  /** `statPrefix` of `control_plane.`, empty or with its final dot. */
  constructor(
    method: string,
    source: ApiConfigSource,
    statPrefix: string,
    context: GrpcSourcesContext,
    events: StreamEvents,
  ) {
    this.#method = method;
    this.#source = source;
    this.#context = context;
    this.#events = events;
    this.#channel = new GrpcChannel(source.grpc_services![0]!, context.calls, { maxMessageBytes: MAX_RESPONSE_BYTES });
    this.#scope = context.store.addScope(`${statPrefix}control_plane.`, ControlPlaneStats);
    this.#stats = context.store.scope(this.#scope);
    this.#backOff = backOffOf(source);
    const { rate_limit_settings: limits } = source;
    if (limits !== undefined) {
      const { max_tokens: tokens = DEFAULT_TOKENS, fill_rate: perSecond = DEFAULT_FILL_RATE } = limits;
      this.#bucket = new TokenBucket(tokens, perSecond, performance.now());
    }
  }

  /** Opens the stream. */
  open(): void {
    if (this.#isClosed) return;
    const attempt: Attempt = {
      name: this.#name,
      call: undefined,
      fail: (error) => this.#lose(attempt, messageOf(error)),
    };
    this.#attempt = attempt;
    this.#guard(() => this.#begin(attempt));
    if (this.#attempt === undefined) return;
    this.#guard(() => this.#events.opened());
    this.send();
  }

  /** Sends pending requests as fast as the rate limit allows. */
  send(): void {
    this.#guard(() => this.#sendDue());
  }

  /** Called when an exception may have lost a request: reopens the stream, which sends all requests again. */
  fail(error: unknown): void {
    if (this.#attempt !== undefined) failDomain(this.#attempt, error);
  }

  #begin(attempt: Attempt): void {
    let hasBegun = false;
    attempt.call = this.#channel.stream(this.#method, {
      onConnected: () => this.#connected(),
      onMessage: (message) => this.#receive(attempt, message),
      onDrained: () => {
        if (hasBegun) this.send();
      },
      onEnd: ({ code, details }) => {
        const lose = () => this.#lose(attempt, `${code}, ${details}`);
        // Subscribers are not called before their subscription has returned.
        if (hasBegun) lose();
        else setImmediate(lose);
      },
    });
    hasBegun = true;
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.fail(error);
    }
  }

  #sendDue(): void {
    const call = this.#attempt?.call;
    if (call === undefined || this.#drainTimer !== undefined) return;
    while (this.#events.due > 0) {
      // The rest follows when the server has read.
      if (call.queuedBytes > MAX_QUEUED_BYTES) return;
      if (this.#bucket?.take(performance.now()) === false) return this.#wait(this.#bucket.waitMs);
      call.write(this.#events.next());
    }
    this.#setPending(0);
  }

  /** Sets the identifier of the control plane. One with a line end is ignored; such a response is refused. */
  identify(identifier: string): void {
    if (identifier === this.#identifier || breaksLine(identifier)) return;
    this.#identifier = identifier;
    this.#context.store.setText(this.#scope, ControlPlaneStats.at.identifier, identifier);
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
    clearTimeout(this.#retryTimer);
    this.#channel.close();
    this.#context.store.removeScope(this.#scope);
  }

  #connected(): void {
    this.#stats.set(ControlPlaneStats.at.connected_state, 1);
    if (this.#lastFailure !== '') logger.info(`${shownName(this.#name)} is open again`);
    this.#lastFailure = '';
  }

  #receive(attempt: Attempt, message: Buffer): void {
    const { call } = attempt;
    call?.pause();
    this.#events.received(message).then(
      () => {
        // Only now: a server that sends garbage on each stream must not be called twice a second forever.
        this.#backOff.reset();
        if (attempt === this.#attempt) this.#guard(() => call?.resume());
      },
      (error: unknown) => {
        if (error instanceof UnreadableError) this.#lose(attempt, error.message);
        else if (attempt === this.#attempt) this.fail(error);
      },
    );
  }

  #lose(attempt: Attempt, reason: string): void {
    if (attempt !== this.#attempt) return;
    this.#end();
    if (reason !== this.#lastFailure) logger.warning(`${shownName(this.#name)} closed: ${escaped(reason)}`);
    this.#lastFailure = reason;
    this.#retryTimer = setTimeout(() => this.open(), Math.min(MAX_TIMER_MS, this.#backOff.next()));
    this.#events.lost();
  }

  #end(): void {
    const attempt = this.#attempt;
    this.#attempt = undefined;
    attempt?.call?.cancel();
    clearTimeout(this.#drainTimer);
    this.#drainTimer = undefined;
    if (attempt === undefined) return;
    this.#stats.set(ControlPlaneStats.at.connected_state, 0);
    this.#setPending(0);
  }

  #wait(ms: number): void {
    this.#stats.increment(ControlPlaneStats.at.rate_limit_enforced);
    this.#setPending(this.#events.due);
    this.#drainTimer = setTimeout(
      () => {
        this.#drainTimer = undefined;
        this.send();
      },
      Math.min(MAX_TIMER_MS, Math.ceil(ms)),
    );
  }

  /** Sets the gauge. A gauge that was never above 0 stays unused. */
  #setPending(requests: number): void {
    const at = ControlPlaneStats.at.pending_requests;
    if (this.#stats.page[this.#stats.base + at] !== requests) this.#stats.set(at, requests);
  }

  get #name(): string {
    const { envoy_grpc: own, google_grpc: google } = this.#source.grpc_services![0]!;
    const method = this.#method.slice(this.#method.lastIndexOf('/') + 1);
    return `${method} gRPC config stream to ${own?.cluster_name ?? google?.target_uri}`;
  }
}

function backOffOf({ grpc_services: services }: ApiConfigSource): BackOff {
  const { base_interval: base, max_interval: max } = services![0]!.envoy_grpc?.retry_policy?.retry_back_off ?? {};
  if (base === undefined) return new BackOff(BASE_INTERVAL_MS, MAX_INTERVAL_MS, new Random());
  const baseMs = durationMs(base);
  return new BackOff(baseMs, durationMs(max, baseMs * INTERVALS), new Random());
}
