// Calls a gRPC service (envoy.config.core.v3.GrpcService) over a grpc-js channel with the service's target, metadata and timeout.
// Messages are encoded bytes. Loaded when a configuration contains such a service.

import type { Socket } from 'node:net';
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientUnaryCall,
  type ClientWritableStream,
  connectivityState,
  credentials,
  type ServiceError,
  setLogger,
} from '@grpc/grpc-js';
import { durationMs } from '../common/time/duration.js';
import { MAX_TIMER_MS } from '../common/time/max-timer.js';
import type { GrpcService } from '../config/generated/api.js';
import { getLogger } from '../log/logger.js';
import { beginCall } from './call-breaker.js';
import type { ClusterHosts } from './cluster-hosts.js';
import { clusterTarget } from './cluster-resolver.js';
import { PACED_ROUND_ROBIN } from './paced-round-robin.js';
import { endClientsBetweenSegments } from './session-care.js';
import { explainUnreadable } from './unreadable-messages.js';

/** Connect timeout for services without a cluster. */
const DEFAULT_CONNECT_MS = 5000;
/** grpc-js waits this long, growing to MAX_BACKOFF_MS, before it reconnects to a host that has failed. */
const INITIAL_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;

const logger = getLogger('grpc');

endClientsBetweenSegments();

// Sends grpc-js's messages to the log; its default is standard error.
setLogger({
  error: (message: string) => logger.warning(message),
  info: (message: string) => logger.info(message),
  debug: (message: string) => logger.debug(message),
});

export class GrpcChannel {
  readonly #client: Client;
  readonly #service: GrpcService;
  readonly #hosts: ClusterHosts;
  /** Unary calls in flight. */
  readonly #calls = new Set<ClientUnaryCall>();
  #isClosed = false;

  constructor(service: GrpcService, hosts: ClusterHosts) {
    const { envoy_grpc: own, google_grpc: google } = service;
    const cluster = own?.cluster_name;
    this.#service = service;
    this.#hosts = hosts;
    this.#client = new Client(
      cluster === undefined ? google!.target_uri! : clusterTarget(hosts, cluster),
      cluster === undefined ? credentials.createInsecure() : reportingCredentials((fd) => hosts.connected(cluster, fd)),
      {
        ...(own?.authority ? { 'grpc.default_authority': own.authority } : {}),
        'grpc.max_receive_message_length': own?.max_receive_message_length || -1,
        'grpc.max_send_message_length': -1,
        'grpc.initial_reconnect_backoff_ms': INITIAL_BACKOFF_MS,
        'grpc.max_reconnect_backoff_ms': MAX_BACKOFF_MS,
        'grpc.service_config': `{"loadBalancingConfig":[{"${PACED_ROUND_ROBIN}":{}}]}`,
        'grpc.service_config_disable_resolution': 1,
        'grpc.enable_http_proxy': 0,
        'grpc.enable_retries': 0,
        // Messages that are buffered for a retry count as sent, which would hide that the service does not read.
        'grpc.per_rpc_retry_buffer_size': 0,
        // Channels of other configurations must not share connections with this one.
        'grpc.use_local_subchannel_pool': 1,
        'grpc.primary_user_agent': 'baton',
        interceptors: [explainUnreadable],
      },
    );
  }

  /** Resolves when connected. Rejects if that takes longer than the cluster's connect_timeout, or when the channel is closed. */
  ready(): Promise<void> {
    const cluster = this.#service.envoy_grpc?.cluster_name;
    const timeoutMs = cluster === undefined ? DEFAULT_CONNECT_MS : this.#hosts.connectTimeoutMs(cluster);
    const deadline = Date.now() + Math.min(MAX_TIMER_MS, timeoutMs);
    const channel = this.#client.getChannel();
    return new Promise((resolve, reject) => {
      // Replaces Client.waitForReady(), which requests the state of a channel that is being closed: that makes it reconnect,
      // until the deadline or forever.
      const check = (error?: Error) => {
        if (this.#isClosed) return reject(new Error('the channel is closed'));
        if (error !== undefined)
          return reject(new Error(`no connection within the connect timeout of ${timeoutMs} ms`));
        const state = channel.getConnectivityState(true);
        if (state === connectivityState.READY) resolve();
        else channel.watchConnectivityState(state, deadline, check);
      };
      setImmediate(check);
    });
  }

  /** Begins a bidirectional streaming call. It fails if no connection can be established. */
  stream(method: string): ClientDuplexStream<Uint8Array, Buffer> {
    const [metadata, end] = this.#begin();
    return this.#client.makeBidiStreamRequest(method, toBuffer, identity, metadata, {}).once('status', end);
  }

  /** Begins a client-streaming call. `ended` is called with its end. */
  clientStream(method: string, ended: (error: ServiceError | null) => void): ClientWritableStream<Uint8Array> {
    const [metadata, end] = this.#begin();
    return this.#client.makeClientStreamRequest(method, toBuffer, identity, metadata, {}, ended).once('status', end);
  }

  /** Makes a unary call. Rejects after the service's timeout, or after `timeoutMs` if none is configured. */
  unary(method: string, message: Uint8Array, timeoutMs: number): Promise<Buffer> {
    const { timeout } = this.#service;
    const deadline = Date.now() + durationMs(timeout, timeoutMs);
    return new Promise((resolve, reject) => {
      const answered = (error: ServiceError | null, answer?: Buffer) => {
        this.#calls.delete(call);
        if (error !== null) reject(error);
        else resolve(answer!);
      };
      const options = { deadline };
      const [metadata, end] = this.#begin();
      const call = this.#client.makeUnaryRequest(method, toBuffer, identity, message, metadata, options, answered);
      this.#calls.add(call.once('status', end));
    });
  }

  /** Closes the channel and cancels unary calls in flight. */
  close(): void {
    this.#isClosed = true;
    for (const call of this.#calls) call.cancel();
    this.#client.close();
  }

  /** Returns the metadata of a new call, and a function to call at its end. */
  #begin(): ReturnType<typeof beginCall> {
    const begun = beginCall(this.#hosts, this.#service.envoy_grpc?.cluster_name);
    for (const { key, value } of this.#service.initial_metadata ?? []) begun[0].add(key!, value ?? '');
    return begun;
  }
}

function toBuffer(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function identity(message: Buffer): Buffer {
  return message;
}

/** Returns credentials for plaintext connections that report the descriptor of each connection before anything is sent. */
function reportingCredentials(onConnected: (fd: number) => void): ChannelCredentials {
  const insecure = credentials.createInsecure();
  const create = insecure._createSecureConnector.bind(insecure);
  insecure._createSecureConnector = (...of) => {
    const connector = create(...of);
    const connect = (socket: SocketWithHandle) => {
      const fd = socket._handle?.fd ?? -1;
      if (fd >= 0) onConnected(fd);
      return connector.connect(socket);
    };
    return { ...connector, connect };
  };
  return insecure;
}

/** A socket with its descriptor, which Node does not document. */
interface SocketWithHandle extends Socket {
  readonly _handle?: { readonly fd: number } | null;
}
