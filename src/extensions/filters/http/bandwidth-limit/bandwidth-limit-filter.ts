// The bandwidth_limit filter of one request: limits its body, that of the response, or both, and reports the delays in trailers.

import {
  DataStatus,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type StreamControl,
  type WorkerContext,
} from '../../../sdk.js';
import { type Direction, LimitedBody } from './limited-body.js';
import type { BandwidthRules } from './rules.js';

export class BandwidthLimitFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: BandwidthRules;
  readonly #context: WorkerContext;
  /** Undefined: the direction is not limited, or has not begun. */
  #request: LimitedBody | undefined;
  #response: LimitedBody | undefined;
  /** The received trailers of the response. */
  #trailers: HeaderBlock | undefined;

  constructor(stream: StreamControl, rules: BandwidthRules, context: WorkerContext) {
    this.#stream = stream;
    this.#rules = rules;
    this.#context = context;
  }

  decodeHeaders(): HeadersStatus {
    const rules = this.#rules;
    if (!rules.limitsRequests) return HeadersStatus.Continue;
    const stats = rules.requestStats(this.#context);
    stats.enabled.increment();
    const stream = this.#stream;
    this.#request = new LimitedBody(stream, this.#context, rules.bucketFor(this.#context), rules.fillMs, stats, {
      pass: (bytes) => stream.passRequestBytes(bytes),
      continue: () => stream.continueDecoding(),
      pause: () => stream.pauseRequest(),
      resume: () => stream.resumeRequest(),
      onShortage: () => this.#refuse(),
      onFinish() {},
    });
    return HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#request === undefined ? DataStatus.Continue : this.#request.write(offset, length, endStream);
  }

  decodeTrailers(): HeadersStatus {
    return this.#request?.end() === true ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  encodeHeaders(): HeadersStatus {
    const rules = this.#rules;
    if (!rules.limitsResponses) return HeadersStatus.Continue;
    const stats = rules.responseStats(this.#context);
    stats.enabled.increment();
    const stream = this.#stream;
    const direction: Direction = {
      pass: (bytes) => stream.passResponseBytes(bytes),
      continue: () => stream.continueEncoding(),
      pause: () => stream.pauseResponse(),
      resume: () => stream.resumeResponse(),
      onShortage: () => this.#refuse(),
      onFinish: () => this.#reportDelays(),
    };
    const bucket = rules.bucketFor(this.#context);
    this.#response?.destroy();
    this.#response = new LimitedBody(stream, this.#context, bucket, rules.fillMs, stats, direction);
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#response === undefined ? DataStatus.Continue : this.#response.write(offset, length, endStream);
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    this.#trailers = trailers;
    return this.#response?.end() === true ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  onRequestBlocked(): void {
    this.#request?.blocked();
  }
  onRequestDrained(): void {
    this.#request?.drained();
  }
  onResponseBlocked(): void {
    this.#response?.blocked();
  }
  onResponseDrained(): void {
    this.#response?.drained();
  }

  onDestroy(): void {
    this.#request?.destroy();
    this.#response?.destroy();
  }

  /** Ends the request because memory is short. */
  #refuse(): void {
    const details = 'overload';
    this.#stream.sendLocalReply({ status: 503, body: details, details, flags: ResponseFlag.OverloadManager });
  }

  /** Called when the body of the response has passed, and its end has not. */
  #reportDelays(): void {
    const names = this.#rules.trailers;
    if (names === undefined) return;
    const trailers = this.#trailers ?? this.#stream.addResponseTrailers();
    if (trailers === undefined) return;
    setDelay(trailers, names.requestDelay, this.#request?.durationMs);
    setDelay(trailers, names.requestFilterDelay, this.#request?.delayMs);
    setDelay(trailers, names.responseDelay, this.#response?.durationMs);
    setDelay(trailers, names.responseFilterDelay, this.#response?.delayMs);
  }
}

/** Without a delay there is no field. */
function setDelay(trailers: HeaderBlock, name: HeaderKey, delayMs = 0): void {
  if (delayMs > 0) trailers.set(name, String(delayMs));
}
