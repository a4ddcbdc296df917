// Checks a host by the health protocol of gRPC (grpc.health.v1.Health/Check).

import { headerKey } from '../common/text/header-names.js';
import type { RequestEncoder } from '../http/codec/streams.js';
import { isGrpcRequest } from '../http/headers/grpc-reply.js';
import { setGrpcTimeout } from '../http/headers/grpc-timeout.js';
import { type HeaderBlock, Method } from '../http/headers/header-block.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { CheckTarget } from '../upstream/health-checks/check-target.js';
import type { OnChecked } from '../upstream/health-checks/checker.js';
import type { GrpcCheckSpec } from '../upstream/health-checks/health-check-spec.js';
import { Outcome } from '../upstream/health-checks/host-health.js';
import { CHECKS_USER_AGENT, StreamChecker } from '../upstream/health-checks/stream-checker.js';
import { MessageReader } from './message-reader.js';

export interface GrpcCheckerOptions {
  readonly spec: GrpcCheckSpec;
  readonly timeoutMs: number;
  /** Host field of this endpoint; '': that of the checks. */
  readonly hostname: string;
}

/** A HealthCheckResponse has one field. */
const MAX_MESSAGE_BYTES = 1024;
const OK = 200;

export class GrpcChecker extends StreamChecker {
  readonly #options: GrpcCheckerOptions;
  #reader = new MessageReader(MAX_MESSAGE_BYTES);
  /** What is wrong with the response so far. */
  #mistake: string | undefined;
  /** HealthCheckResponse.status; undefined: there was no message. */
  #status: number | undefined;

  constructor(caller: CallingThread, target: CheckTarget, options: GrpcCheckerOptions, onChecked: OnChecked) {
    super(caller, target, options.timeoutMs, onChecked);
    this.#options = options;
  }

  protected request(head: HeaderBlock, encoder: RequestEncoder): void {
    const { hostname, spec, timeoutMs } = this.#options;
    this.#reader = new MessageReader(MAX_MESSAGE_BYTES);
    this.#mistake = this.#status = undefined;
    head.setMethod(Method.Post, 'POST');
    head.setPath('/grpc.health.v1.Health/Check');
    head.add(HOST, hostname || spec.host);
    head.add(TE, 'trailers');
    head.add(CONTENT_TYPE, 'application/grpc');
    head.add(USER_AGENT, CHECKS_USER_AGENT);
    spec.metadata?.apply(head, undefined);
    setGrpcTimeout(head, timeoutMs);
    encoder.headers(head, false);
    const { memory } = this.thread;
    const offset = memory.scratch(spec.message.length);
    memory.bytes.set(spec.message, offset);
    encoder.data(offset, spec.message.length, true);
  }

  protected responded(headers: HeaderBlock, endStream: boolean): void {
    if (headers.status !== OK) this.#mistake = `it has answered ${headers.status}`;
    else if (!isGrpcRequest(headers)) this.#mistake = 'its answer is not of gRPC';
    if (endStream) this.#judge(headers);
    else if (this.#mistake !== undefined) this.#refuse();
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#reader.push(this.thread.memory.bytes.subarray(offset, offset + length));
    for (let message = this.#reader.next(); message !== undefined; message = this.#reader.next()) {
      const status = Buffer.isBuffer(message) && this.#status === undefined ? statusOf(message) : undefined;
      if (status === undefined) {
        this.#mistake = 'its answer is not one message of the health protocol';
        return this.#refuse();
      }
      this.#status = status;
    }
    if (!endStream) return;
    this.#mistake ??= 'its answer has no grpc-status';
    this.ended(Outcome.Failed, this.#mistake);
  }

  onTrailers(trailers: HeaderBlock): void {
    this.#judge(trailers);
  }

  /** Judges a response by its last fields. */
  #judge(fields: HeaderBlock): void {
    const code = fields.get(GRPC_STATUS);
    if (this.#mistake !== undefined) return this.ended(Outcome.Failed, this.#mistake);
    if (code === undefined) return this.ended(Outcome.Failed, 'its answer has no grpc-status');
    if (code !== '0') return this.ended(Outcome.Failed, `it has answered with gRPC status ${Number(code)}`);
    const status = this.#status ?? -1;
    const name = STATUSES[status] ?? (status < 0 ? 'no message' : String(status));
    this.ended(status === SERVING ? Outcome.Passed : Outcome.Failed, `it has answered ${name}`);
  }

  /** Ends a check whose response need not be read to its end. */
  #refuse(): void {
    this.disconnect();
    this.ended(Outcome.Failed, this.#mistake ?? '');
  }
}

const STATUSES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const SERVING = 1;

/** Returns the status of an encoded HealthCheckResponse; undefined: it is not valid. */
function statusOf(message: Buffer): number | undefined {
  let status = 0;
  for (let at = 0; at < message.length; ) {
    const isStatus = message[at++] === STATUS_TAG;
    const value = message[at++];
    // Other fields do not exist, and values are small.
    if (!isStatus || value === undefined || value > 127) return undefined;
    status = value;
  }
  return status;
}

/** Field 1, a varint. */
const STATUS_TAG = 8;

const HOST = headerKey('host');
const TE = headerKey('te');
const CONTENT_TYPE = headerKey('content-type');
const USER_AGENT = headerKey('user-agent');
const GRPC_STATUS = headerKey('grpc-status');
