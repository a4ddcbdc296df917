// Checks a host by HTTP/1.1 requests: evaluates the status of the response and, optionally, its service name.

import { messageOf } from '../../common/errors/errors.js';
import { Priority } from '../../common/priority.js';
import { headerKey } from '../../common/text/header-names.js';
import type { ClientProtocol } from '../../http/codec/connections.js';
import { type CodecError, ResetReason, type ResponseDecoder } from '../../http/codec/streams.js';
import { h1Client } from '../../http/h1/protocol.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { RuntimeFraction } from '../../runtime/runtime.js';
import type { CallingThread } from '../calling-thread.js';
import { NO_CONNECT_OPTIONS } from '../connections/connect-options.js';
import { type ConnectionPool, type RequestedCluster, UpstreamConnection } from '../connections/upstream-connection.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import type { CheckTarget } from './check-target.js';
import type { Checker, OnChecked } from './checker.js';
import { type HttpCheckSpec, isInRanges } from './health-check-spec.js';
import { Outcome } from './host-health.js';

export interface HttpCheckerOptions {
  readonly spec: HttpCheckSpec;
  readonly timeoutMs: number;
  /** Host field of this endpoint; '': that of the checks. */
  readonly hostname: string;
  /** Whether the service name of a response is verified. */
  readonly verifiesService: RuntimeFraction;
  /** Called when a response's service name is verified. */
  readonly onVerified: () => void;
}

export class HttpChecker implements Checker, ConnectionPool, ResponseDecoder {
  readonly cluster: RequestedCluster;
  readonly host: Host;
  readonly priority = Priority.Default;
  readonly protocol: ClientProtocol;
  readonly options = NO_CONNECT_OPTIONS;
  streamsPerConnection = 1;
  readonly isDraining = false;
  readonly #caller: CallingThread;
  readonly #options: HttpCheckerOptions;
  readonly #onChecked: OnChecked;
  readonly #timer = new Timer<HttpChecker>(this, onTimeout);
  #connection: UpstreamConnection | undefined;
  #isIdle = false;
  #isChecking = false;
  /**
   * The request was sent on the previous check's connection. If that ends, the host may not have received the request, which is
   * sent again.
   */
  #canRetry = false;
  /** The outcome by the response head. */
  #outcome: Outcome = Outcome.Failed;
  #reason = '';

  constructor(
    caller: CallingThread,
    { cluster, host }: CheckTarget,
    options: HttpCheckerOptions,
    onChecked: OnChecked,
  ) {
    this.#caller = caller;
    this.cluster = cluster;
    this.host = host;
    this.protocol = h1Client(cluster.thread.memory, cluster.spec.http1);
    this.#options = options;
    this.#onChecked = onChecked;
  }

  get thread(): UpstreamThread {
    return this.cluster.thread;
  }

  begin(): void {
    this.#caller.begin();
    this.#isChecking = true;
    this.thread.wheel.schedule(this.#timer, this.#options.timeoutMs);
    try {
      this.#canRetry = this.#connection !== undefined && this.#isIdle;
      if (this.#canRetry) return this.#send(this.#connection!);
      this.#disconnect();
      this.#connection = new UpstreamConnection(this);
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#caller.begin();
    this.#isChecking = false;
    this.thread.wheel.cancel(this.#timer);
    this.#disconnect();
  }

  /** Called when no response came in time. */
  timedOut(): void {
    this.#disconnect();
    this.#ended(Outcome.Timeout, 'it does not answer in time');
  }

  // ── The connection ───────────────────────────────────────────────────────────────────────────────────────────────

  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void {
    this.#isIdle = true;
    if (wasConnecting && this.#isChecking) this.#send(connection);
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    this.#connection = undefined;
    if (failure === PoolFailure.ConnectTimeout) this.timedOut();
    else this.#ended(Outcome.NetworkFailure, detail);
  }

  connectionEnding(): void {}

  connectionClosed(connection: UpstreamConnection): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    this.#isIdle = false;
    if (!this.#isChecking || !this.#canRetry) return this.#ended(Outcome.NetworkFailure, CLOSED);
    this.#canRetry = false;
    try {
      this.#connection = new UpstreamConnection(this);
    } catch (error) {
      this.#failed(error);
    }
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(): void {}

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#canRetry = false;
    this.#judge(headers);
    if (endStream) this.#ended(this.#outcome, this.#reason);
  }

  onData(_offset: number, _length: number, endStream: boolean): void {
    if (endStream) this.#ended(this.#outcome, this.#reason);
  }

  onTrailers(): void {
    this.#ended(this.#outcome, this.#reason);
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    // When the host has ended the connection, connectionClosed() follows.
    if (reason !== ResetReason.ProtocolError || error === undefined) return;
    this.#ended(Outcome.NetworkFailure, `its answer is no HTTP/1.1 (${error.detail})`);
  }

  onWriteBlocked(): void {}

  onWriteDrained(): void {}

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #send(connection: UpstreamConnection): void {
    const { hostname, spec } = this.#options;
    this.#isIdle = false;
    const encoder = connection.startRequest(this);
    const head = headerBlocks(this.thread.memory).take();
    try {
      head.setMethod(spec.method, spec.methodText);
      head.setPath(spec.path);
      head.add(HOST, hostname || spec.host);
      head.add(USER_AGENT, CHECKS_USER_AGENT);
      spec.headers?.apply(head, undefined);
      encoder.headers(head, true);
    } finally {
      head.drop();
    }
  }

  #judge(headers: HeaderBlock): void {
    const { spec } = this.#options;
    const { status } = headers;
    this.#reason = `it has answered ${status}`;
    if (!isInRanges(status, spec.expected)) {
      this.#outcome = isInRanges(status, spec.retriable) ? Outcome.FailedRetriably : Outcome.Failed;
    } else if (!this.#isOfService(headers)) {
      this.#outcome = Outcome.Failed;
      const service = headers.get(HEALTHCHECKED_CLUSTER);
      this.#reason =
        service === undefined ? 'it does not say which service it is of' : `it is of the service '${oneLine(service)}'`;
    } else {
      this.#outcome = headers.find(DEGRADED) >= 0 ? Outcome.Degraded : Outcome.Passed;
    }
  }

  #isOfService(headers: HeaderBlock): boolean {
    const { onVerified, spec, verifiesService } = this.#options;
    const { service } = spec;
    if (service === undefined || !verifiesService.isHit(this.thread.random)) return true;
    onVerified();
    const index = headers.findValue(HEALTHCHECKED_CLUSTER);
    if (index < 0) return service.matches(headers.memory, 0, 0);
    return service.matches(headers.memory, headers.valueStart(index), headers.valueEnd(index));
  }

  #failed(error: unknown): void {
    this.#disconnect();
    this.#ended(Outcome.NetworkFailure, messageOf(error));
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#isIdle = false;
    connection?.close();
  }

  #ended(outcome: Outcome, reason: string): void {
    if (!this.#isChecking) return;
    this.#isChecking = false;
    this.thread.wheel.cancel(this.#timer);
    this.#onChecked(outcome, reason);
  }
}

function onTimeout(checker: HttpChecker): void {
  checker.timedOut();
}

/** Makes a host's text safe for the log. */
function oneLine(text: string): string {
  return text.replace(/[^ -~]/g, '?').slice(0, 100);
}

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
const DEGRADED = headerKey('x-envoy-degraded');
const HEALTHCHECKED_CLUSTER = headerKey('x-envoy-upstream-healthchecked-cluster');

/** As in Envoy: hosts recognise checks by it and omit them from their logs. */
const CHECKS_USER_AGENT = 'Envoy/HC';
const CLOSED = 'it has closed the connection without an answer';
