// Calls the methods of a gRPC service (envoy.config.core.v3.GrpcService) on any thread, with the service's target, metadata and
// timeout. Messages are encoded bytes. A channel has no connections of its own: its calls use those of its cluster.

import { StreamInfo } from '../access-log/stream/stream-info.js';
import { byteText } from '../common/text/byte-text.js';
import { type HeaderKey, headerKey } from '../common/text/header-names.js';
import { durationMs } from '../common/time/duration.js';
import type { GrpcService } from '../config/generated/api.js';
import { type HeaderBlock, headerBlocks } from '../http/headers/header-block.js';
import type { HeaderMutations } from '../http/headers/header-mutations.js';
import type { RetryPolicy } from '../http/routing/retries/retry-policy.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { ClusterReference } from '../upstream/cluster-manager.js';
import { compileCallRetries } from '../upstream/http-calls/call-retry-policy.js';
import type { RunningCall } from '../upstream/http-calls/retried-call.js';
import { GrpcCall, type GrpcCallEvents, type GrpcCallRequest, type GrpcOpening } from './grpc-call.js';
import { compileMetadata } from './initial-metadata.js';
import { type GrpcStream, RetriedGrpcCall } from './retried-grpc-call.js';
import { GrpcCode, type GrpcStatus } from './status.js';
import { authorityOf } from './target.js';

/** Limit of a received message, unless the service or the user of the channel sets another one. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

export interface ChannelOptions {
  /** Limit of a received message, unless the service sets another one. */
  readonly maxMessageBytes?: number;
}

/** One of these is called exactly once, perhaps before GrpcChannel.unary() returns, but never after cancel(). */
export interface UnaryEvents {
  onAnswer(message: Buffer): void;
  onFailure(status: GrpcStatus): void;
}

interface Field {
  readonly key: HeaderKey;
  readonly value: string;
}

export class GrpcChannel {
  readonly #thread: CallingThread;
  readonly #cluster: ClusterReference;
  readonly #authority: string;
  readonly #metadata: HeaderMutations | undefined;
  readonly #hasOperators: boolean;
  /** Undefined: the service has none. */
  readonly #timeoutMs: number | undefined;
  readonly #maxMessageBytes: number;
  readonly #showsOrigin: boolean;
  readonly #release: (() => void) | undefined;
  /** Undefined: calls are not retried. */
  readonly #retries: RetryPolicy | undefined;

  /** `service` has passed its checks. */
  constructor(
    service: GrpcService,
    thread: CallingThread,
    { maxMessageBytes = MAX_MESSAGE_BYTES }: ChannelOptions = {},
  ) {
    const { envoy_grpc: own, google_grpc: google, timeout } = service;
    this.#thread = thread;
    if (own === undefined) {
      const target = thread.target!(google!.target_uri!);
      this.#cluster = target.reference;
      this.#release = target.release;
      this.#authority = authorityOf(google!.target_uri!);
    } else {
      this.#cluster = thread.reference(own.cluster_name!);
      this.#authority = byteText(own.authority || own.cluster_name!);
    }
    this.#metadata = compileMetadata(service.initial_metadata, 'initial_metadata');
    this.#hasOperators = service.initial_metadata?.some(({ value }) => value?.includes('%')) === true;
    this.#timeoutMs = durationMs(timeout, undefined);
    // As in Envoy, calls of google_grpc are not retried.
    this.#retries = own && compileCallRetries(service.retry_policy, 'retry_policy');
    this.#maxMessageBytes = own?.max_receive_message_length || maxMessageBytes;
    this.#showsOrigin = own !== undefined && own.skip_envoy_headers !== true;
  }

  /** Begins a streaming call, which may last without limit. See GrpcCall.start(). `info`: for operators in the metadata. */
  stream(path: string, events: GrpcCallEvents, info?: StreamInfo): GrpcCall | undefined {
    return GrpcCall.start(this.#thread, this.#cluster.current, this.#request(path, 0, info), events);
  }

  /** Like stream(), with retries by a policy: that of the service, unless there is another one. */
  retriedStream(
    path: string,
    events: GrpcCallEvents,
    info?: StreamInfo,
    policy: RetryPolicy | undefined = this.#retries,
  ): GrpcStream | undefined {
    const request = this.#request(path, 0, info);
    if (policy === undefined) return GrpcCall.start(this.#thread, this.#cluster.current, request, events);
    return new RetriedGrpcCall(this.#thread, this.#cluster, request, events, policy).begin();
  }

  /**
   * Makes a unary call, with the retries of the service. Returns undefined when it has ended already. It fails after the service's
   * timeout, or after `timeoutMs` if none is configured (0: never).
   */
  unary(
    path: string,
    message: Uint8Array,
    timeoutMs: number,
    events: UnaryEvents,
    info?: StreamInfo,
  ): RunningCall | undefined {
    let answer: Buffer | undefined;
    let call: RunningCall | undefined;
    const request = this.#request(path, this.#timeoutMs ?? timeoutMs, info);
    const received: GrpcCallEvents = {
      onMessage(each) {
        if (answer === undefined) answer = each;
        else {
          call?.cancel();
          events.onFailure({ code: GrpcCode.Internal, details: 'the server sent several messages for one answer' });
        }
      },
      onEnd(status) {
        if (status.code !== GrpcCode.Ok) events.onFailure(status);
        else if (answer !== undefined) events.onAnswer(answer);
        else events.onFailure({ code: GrpcCode.Internal, details: 'the server sent no answer' });
      },
    };
    call =
      this.#retries === undefined
        ? GrpcCall.start(this.#thread, this.#cluster.current, request, received, unaryOpening(message))
        : new RetriedGrpcCall(this.#thread, this.#cluster, request, received, this.#retries, message).begin();
    return call;
  }

  /** Called when no call will follow. Calls in flight go on. */
  close(): void {
    this.#release?.();
  }

  #request(path: string, timeoutMs: number, info: StreamInfo | undefined): GrpcCallRequest {
    const fields = info !== undefined && this.#hasOperators ? this.#fieldsFor(info) : undefined;
    return {
      path,
      timeoutMs,
      maxMessageBytes: this.#maxMessageBytes,
      writeMetadata: (head, tryTimeoutMs) => this.#writeMetadata(head, tryTimeoutMs, fields),
    };
  }

  /** Formats the metadata when a call begins: at its connection or a retry, `info` may be that of another request. */
  #fieldsFor(info: StreamInfo): readonly Field[] {
    const head = headerBlocks(this.#thread.begin().memory).take();
    try {
      this.#metadata!.apply(head, info);
      return Array.from({ length: head.size }, (_, i) => ({ key: headerKey(head.name(i)), value: head.value(i) }));
    } finally {
      head.drop();
    }
  }

  #writeMetadata(head: HeaderBlock, timeoutMs: number, fields: readonly Field[] | undefined): void {
    head.set(HOST, this.#authority);
    if (fields === undefined) this.#metadata?.apply(head, NO_STREAM);
    else for (const { key, value } of fields) head.add(key, value);
    if (!this.#showsOrigin) return;
    head.add(INTERNAL, 'true');
    head.add(FORWARDED_FOR, this.#thread.ip);
    if (timeoutMs > 0) head.add(EXPECTED_TIMEOUT, String(Math.floor(timeoutMs)));
  }
}

function unaryOpening(message: Uint8Array): GrpcOpening {
  return { messages: [message], isComplete: true, isPaused: false };
}

const NO_STREAM = new StreamInfo();
const HOST = headerKey('host');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
const INTERNAL = headerKey('x-envoy-internal');
const FORWARDED_FOR = headerKey('x-forwarded-for');
