// One stream with a service that controls this process (load reports, health discovery): opened again after each end, with its losses
// logged once for a reason.

import { messageOf } from '../common/errors/errors.js';
import { shownName } from '../common/text/shown.js';
import type { GrpcService } from '../config/generated/api.js';
import { escaped } from '../config/text/problem.js';
import type { GrpcCall } from '../grpc/grpc-call.js';
import { GrpcChannel } from '../grpc/grpc-channel.js';
import { getLogger } from '../log/logger.js';
import type { CallingThread } from '../upstream/calling-thread.js';

/** Above this, messages should wait: the service does not read. */
const MAX_QUEUED_BYTES = 1024 * 1024;

const logger = getLogger('upstream');

export interface ServiceStreamOptions {
  readonly service: GrpcService;
  readonly calls: CallingThread;
  /** Path of the method. */
  readonly method: string;
  /** Purpose of the stream in log lines, before the name of the service: 'load reports to'. */
  readonly purpose: string;
  /** Returns the delay before the stream is opened again, in ms. */
  readonly retryMs: () => number;
  /** Called when the stream has been opened. Its connection may not exist yet. */
  opened(call: GrpcCall): void;
  /** The bytes are the call's: valid during the callback. */
  received(message: Buffer): void;
  /** Called when the stream has ended, before it is opened again. */
  lost(): void;
  /** Called for an internal error, which ends the stream. */
  failed(what: string, error: unknown): void;
}

export class ServiceStream {
  /** For log lines. */
  readonly name: string;
  readonly #options: ServiceStreamOptions;
  readonly #channel: GrpcChannel;
  #call: GrpcCall | undefined;
  #retry: NodeJS.Timeout | undefined;
  #lastFailure = '';
  #isClosed = false;

  constructor(options: ServiceStreamOptions) {
    this.#options = options;
    const { calls, purpose, service } = options;
    this.#channel = new GrpcChannel(service, calls);
    this.name = `${purpose} ${shownName(service.envoy_grpc?.cluster_name ?? service.google_grpc?.target_uri ?? '')}`;
  }

  /** The current call; undefined while there is none. */
  get call(): GrpcCall | undefined {
    return this.#call;
  }

  /** The service does not read what was sent. */
  get isBlocked(): boolean {
    return this.#call !== undefined && this.#call.queuedBytes > MAX_QUEUED_BYTES;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  open(): void {
    if (this.#isClosed) return;
    let isOpening = true;
    const call = this.#channel.stream(this.#options.method, {
      onConnected: () => this.#connected(),
      onMessage: (message) => this.guard(() => this.#options.received(message)),
      onEnd: ({ code, details }) => {
        const lose = () => this.lose(`${code}, ${details}`);
        if (isOpening) setImmediate(lose);
        else lose();
      },
    });
    isOpening = false;
    if (call === undefined) return;
    this.#call = call;
    this.#options.opened(call);
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    clearTimeout(this.#retry);
    this.#channel.close();
  }

  /** Ends the stream, for a reason that is logged, and opens it again after a delay. */
  lose(reason: string): void {
    if (this.#isClosed) return;
    this.#stop();
    this.#options.lost();
    if (reason !== this.#lastFailure) logger.warning(`${this.name} closed: ${escaped(reason)}`);
    this.#lastFailure = reason;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.guard(() => this.open()), this.#options.retryMs());
  }

  /** Reports an internal error, and loses the stream. */
  fail(error: unknown): void {
    this.#options.failed(`internal error: the stream of ${this.name} is ended`, error);
    this.lose(messageOf(error));
  }

  /** Calls `act`, and fails if it throws. */
  guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.fail(error);
    }
  }

  #connected(): void {
    if (this.#lastFailure !== '') logger.info(`${this.name} is open again`);
    this.#lastFailure = '';
  }

  #stop(): void {
    this.#call?.cancel();
    this.#call = undefined;
  }
}
