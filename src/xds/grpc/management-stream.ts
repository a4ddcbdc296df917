// One stream to a management server: opened, paced, and opened again after it broke. What is said on it is others' business.

import type { ClientDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '../../common/errors/errors.js';
import { Random } from '../../common/random.js';
import { shownName } from '../../common/text/shown.js';
import { durationMs } from '../../common/time/duration.js';
import { LONGEST_TIMER_MS } from '../../common/time/longest-timer.js';
import type { ApiConfigSource } from '../../config/generated/api.js';
import { endsLine } from '../../config/schema/line-rules.js';
import { escaped } from '../../config/text/problem.js';
import { GrpcChannel } from '../../grpc/grpc-channel.js';
import { type FaultDomain, failDomain, inDomain, outsideDomains } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { ControlPlaneStats } from '../../stats/layouts/xds.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import { BackOff } from './back-off.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { TokenBucket } from './token-bucket.js';

/** A message is not what the protocol asks for: the server's mistake, and not this process's. */
export class UnreadableError extends Error {}

export interface StreamEvents {
  /** There is a new stream: nothing was said on it yet. */
  opened(): void;
  /**
   * Resolves when the message is handled: the next one waits for it. Rejects with an UnreadableError when it makes no sense. Whatever
   * it rejects with ends the stream.
   */
  received(message: Buffer): Promise<void>;
  /** The stream has ended, or cannot be had; it is tried again. */
  lost(): void;
  /** Requests that are due. */
  readonly due: number;
  /** The next of them, encoded. */
  next(): Uint8Array;
}

/** As Envoy's, unless the service's retry_policy says otherwise. */
const BASE_INTERVAL_MS = 500;
const MAX_INTERVAL_MS = 30_000;
/** max_interval, if only base_interval is given, in base_intervals. */
const INTERVALS = 10;
const DEFAULT_TOKENS = 100;
const DEFAULT_FILL_RATE = 10;

type Call = ClientDuplexStream<Uint8Array, Buffer>;

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
  #channel: GrpcChannel | undefined;
  #call: Call | undefined;
  /** The one that #call belongs to; undefined while there is none. */
  #attempt: FaultDomain | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #drainTimer: NodeJS.Timeout | undefined;
  /** Why there is no stream, as the log has said it. */
  #trouble = '';
  #identifier = '';
  #isClosed = false;

  /** `statPrefix` of `control_plane.`, with its final dot or empty. */
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
    const attempt: FaultDomain = {
      name: this.#name,
      fail: (error) => {
        if (attempt === this.#attempt) this.#lose(this.#call, messageOf(error));
      },
    };
    this.#attempt = attempt;
    inDomain(attempt, () => this.#begin());
    if (this.#call === undefined) return;
    this.#guard(() => this.#events.opened());
    this.send();
  }

  /** Sends what is due, as fast as the rate limit allows. */
  send(): void {
    this.#guard(() => this.#sendDue());
  }

  /** An exception has kept something from being said: the stream is opened again, and all of it said. */
  fail(error: unknown): void {
    if (this.#attempt !== undefined) failDomain(this.#attempt, error);
  }

  #begin(): void {
    const channel = new GrpcChannel(this.#source.grpc_services![0]!, this.#context.hosts);
    this.#channel = channel;
    const call: Call = channel.stream(this.#method);
    this.#call = call;
    call.on('data', (message: Buffer) => outsideDomains(() => this.#receive(call, message)));
    call.on('status', ({ code, details }) => outsideDomains(() => this.#lose(call, `${code}, ${details}`)));
    // The status says the same.
    call.on('error', () => {});
    channel.ready().then(
      () => this.#connected(call),
      (error: unknown) => outsideDomains(() => this.#lose(call, messageOf(error))),
    );
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.fail(error);
    }
  }

  #sendDue(): void {
    if (this.#call === undefined || this.#drainTimer !== undefined) return;
    while (this.#events.due > 0) {
      if (this.#bucket?.take(performance.now()) === false) return this.#wait(this.#bucket.waitMs);
      this.#call.write(this.#events.next());
    }
    this.#setPending(0);
  }

  /** The control plane says who it is. A response that would end a line there is refused. */
  identify(identifier: string): void {
    if (identifier === this.#identifier || endsLine(identifier)) return;
    this.#identifier = identifier;
    this.#context.store.setText(this.#scope, ControlPlaneStats.at.identifier, identifier);
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
    clearTimeout(this.#retryTimer);
    this.#channel?.close();
    this.#context.store.removeScope(this.#scope);
  }

  #connected(call: Call): void {
    if (call !== this.#call) return;
    this.#stats.set(ControlPlaneStats.at.connected_state, 1);
    if (this.#trouble !== '') logger.info(`${shownName(this.#name)} is open again`);
    this.#trouble = '';
  }

  #receive(call: Call, message: Buffer): void {
    if (call !== this.#call) return;
    call.pause();
    this.#events.received(message).then(
      () => {
        // Not before: a server that sends garbage on each stream is not to be asked twice a second for ever.
        this.#backOff.reset();
        if (call === this.#call) call.resume();
      },
      (error: unknown) => {
        if (error instanceof UnreadableError) this.#lose(call, error.message);
        else if (call === this.#call) this.fail(error);
      },
    );
  }

  /** `call`: undefined when it could not be begun. */
  #lose(call: Call | undefined, reason: string): void {
    if (call !== this.#call || this.#attempt === undefined) return;
    this.#end();
    // Left open it would connect again at once, and as fast as it can where each connection is ended as soon as it is there.
    this.#channel?.close();
    if (reason !== this.#trouble) logger.warning(`${shownName(this.#name)} closed: ${escaped(reason)}`);
    this.#trouble = reason;
    this.#retryTimer = setTimeout(() => this.open(), Math.min(LONGEST_TIMER_MS, this.#backOff.next()));
    this.#events.lost();
  }

  #end(): void {
    const call = this.#call;
    this.#call = undefined;
    this.#attempt = undefined;
    call?.cancel();
    clearTimeout(this.#drainTimer);
    this.#drainTimer = undefined;
    if (call === undefined) return;
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
      Math.min(LONGEST_TIMER_MS, Math.ceil(ms)),
    );
  }

  /** A gauge that never had anything to say stays unused. */
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
