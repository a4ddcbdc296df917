// Checks hosts for the health discovery service (HDS): one stream, in which the service says which hosts to check and how, and the
// server reports their health at an interval.

import { messageOf } from '../../common/errors/errors.js';
import { ProtobufWriter } from '../../common/protobuf-writer.js';
import { Random } from '../../common/random.js';
import { shownName } from '../../common/text/shown.js';
import { inTurns } from '../../common/time/next-turn.js';
import type { ApiConfigSource, Cluster, Node } from '../../config/generated/api.js';
import { encodeJson, loadMessages } from '../../config/schema/messages.js';
import { escaped } from '../../config/text/problem.js';
import type { GrpcCall } from '../../grpc/grpc-call.js';
import { getLogger } from '../../log/logger.js';
import { HdsDelegateStats } from '../../stats/layouts/hds-delegate.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import { BackOff } from '../../xds/grpc/back-off.js';
import type { Resource } from '../../xds/resource.js';
import type { ResourceReader } from '../../xds/resource-reader.js';
import { ServiceStream } from '../service-stream.js';
import type { HealthClusterContext } from './health-cluster.js';
import { HealthClusters } from './health-clusters.js';
import { readSpecifier } from './specifier.js';

const METHOD = '/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck';
const REQUEST = 'envoy.service.health.v3.HealthCheckRequestOrEndpointHealthResponse';
/** The field HealthCheckRequestOrEndpointHealthResponse.endpoint_health_response. */
const REPORT_FIELD = 2;

/** As in Envoy. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;

const logger = getLogger('upstream');

export interface HealthDelegateOptions extends HealthClusterContext {
  /** `hds_config` */
  readonly source: ApiConfigSource;
  readonly node: Node;
  readonly calls: CallingThread;
  /** Returns a reader for clusters. */
  readonly reader: () => Promise<ResourceReader>;
  /** Called for an internal error. */
  failed(what: string, error: unknown): void;
}

export class HealthDelegate {
  readonly #options: HealthDelegateOptions;
  readonly #stream: ServiceStream;
  readonly #clusters: HealthClusters;
  /** The encoded first message of each stream. */
  readonly #request: Uint8Array;
  readonly #scope: ScopeRef;
  readonly #stats: Scope;
  readonly #backOff = new BackOff(MIN_RETRY_MS, MAX_RETRY_MS, new Random());
  #reader: Promise<ResourceReader> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isReporting = false;
  /** The specifier in use; undefined before the first. */
  #current: Buffer | undefined;
  #intervalMs = 0;
  /** The last received specifier that is not applied yet. */
  #next: Buffer | undefined;
  #isApplying = false;

  constructor(options: HealthDelegateOptions) {
    this.#options = options;
    const { calls, node, source, store } = options;
    this.#stream = new ServiceStream({
      service: source.grpc_services![0]!,
      calls,
      method: METHOD,
      purpose: 'health discovery by',
      retryMs: () => this.#backOff.next(),
      opened: (call) => this.#send(call, this.#request),
      received: (message) => this.#receive(message),
      lost: () => this.#lost(),
      failed: options.failed,
    });
    this.#clusters = new HealthClusters(options);
    const capability = { health_check_protocols: ['HTTP', 'TCP'] };
    this.#request = encodeJson(loadMessages(REQUEST)[REQUEST], { health_check_request: { node, capability } });
    this.#scope = store.addScope('hds_delegate.', HdsDelegateStats);
    this.#stats = store.scope(this.#scope);
  }

  /** Opens the stream. */
  start(): void {
    this.#stream.open();
  }

  async close(): Promise<void> {
    this.#stream.close();
    this.#stopTimer();
    this.#next = undefined;
    this.#clusters.close();
    this.#options.store.removeScope(this.#scope);
    (await this.#reader?.catch(() => undefined))?.close();
  }

  #send(call: GrpcCall, message: Uint8Array): void {
    call.write(message);
    this.#stats.increment(HdsDelegateStats.at.responses);
  }

  /** Checks go on, and their results are reported on the next stream. */
  #lost(): void {
    this.#stopTimer();
    this.#stats.increment(HdsDelegateStats.at.errors);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Specifiers are applied one after the other; of those that arrive meanwhile, only the last. */
  #receive(message: Buffer): void {
    this.#backOff.reset();
    this.#stats.increment(HdsDelegateStats.at.requests);
    // The memory of a message is that of the call.
    this.#next = Buffer.from(message);
    if (this.#isApplying) return;
    this.#isApplying = true;
    void this.#applyAll().catch((error) => this.#stream.fail(error));
  }

  async #applyAll(): Promise<void> {
    try {
      for (let message = this.#next; message !== undefined; message = this.#next) {
        this.#next = undefined;
        if (this.#current?.equals(message) !== true) await this.#apply(message);
        // Also when it is unchanged: the stream may be another one.
        this.#schedule();
      }
    } finally {
      this.#isApplying = false;
    }
  }

  async #apply(message: Buffer): Promise<void> {
    try {
      const { clusters, intervalMs, repeated } = readSpecifier(message);
      if (repeated.length > 0) this.#warnOfRepeated(repeated);
      this.#reader ??= this.#options.reader();
      const { refused, resources } = await (await this.#reader).read('cluster', '', clusters);
      if (this.#stream.isClosed) return;
      if (refused.length > 0) throw new Error(refused.map(({ details }) => details).join('; '));
      await inTurns(this.#clusters.replace(resources as readonly Resource<Cluster>[]));
      if (this.#stream.isClosed) return;
      this.#current = message;
      if (intervalMs !== this.#intervalMs) this.#stopTimer();
      this.#intervalMs = intervalMs;
      this.#stats.increment(HdsDelegateStats.at.updates);
    } catch (error) {
      if (this.#stream.isClosed) return;
      this.#stats.increment(HdsDelegateStats.at.errors);
      logger.warning(
        `${this.#stream.name}: the specifier cannot be used: ${escaped(messageOf(error).slice(0, MAX_LOGGED))}`,
      );
    }
  }

  #warnOfRepeated([first, ...others]: readonly string[]): void {
    const more = others.length > 0 ? ` (and ${others.length} more)` : '';
    logger.warning(
      `${this.#stream.name}: the specifier has the cluster '${shownName(first!)}' again${more}, which is ignored`,
    );
  }

  /**
   * Begins the next interval, once there is a specifier. An interval that runs goes on: reports are sent to a service that sends specifiers
   * more often, too.
   */
  #schedule(): void {
    if (this.#current === undefined || this.#stream.call === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#report().catch((error) => this.#stream.fail(error));
    }, this.#intervalMs);
  }

  /** A report of many hosts may take longer than an interval: the next one waits. */
  async #report(): Promise<void> {
    const { call, isBlocked } = this.#stream;
    if (call === undefined) return;
    if (!this.#isReporting && !isBlocked) await this.#sendReport(call);
    this.#schedule();
  }

  async #sendReport(call: GrpcCall): Promise<void> {
    this.#isReporting = true;
    try {
      const report = await inTurns(this.#clusters.report());
      if (call !== this.#stream.call) return;
      const writer = new ProtobufWriter();
      writer.bytes(REPORT_FIELD, report);
      this.#send(call, writer.copy());
    } finally {
      this.#isReporting = false;
    }
  }
}

/** Characters of the reasons why a specifier is refused. */
const MAX_LOGGED = 2000;
