// The stream of segments from one worker to SkyWalking's OAP. Segments wait in a bounded queue while there is no stream.

import type { GrpcService } from '../../../config/generated/api.js';
import { GrpcChannel, GrpcCode, type GrpcStatus, type GrpcStream } from '../../grpc-sdk.js';
import { type CallingThread, getLogger, messageOf, OccasionalLog, Timer, type Timers } from '../../sdk.js';

const METHOD = '/skywalking.v3.TraceSegmentReportService/collect';
/** Maximum size of all waiting segments. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Segments wait while the collector has not read more than this number of bytes. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const RETRY_MS = 5000;
/** How long the collector may take for the last segments. */
const CLOSE_MS = 5000;

const logger = getLogger('tracing');

export interface SegmentEvents {
  sent(): void;
  dropped(segments: number): void;
  /** Called when `segments` that have waited are sent. */
  flushed(segments: number): void;
}

export class SegmentStream {
  readonly #channel: GrpcChannel;
  readonly #events: SegmentEvents;
  readonly #timers: Timers;
  readonly #maxSegments: number;
  readonly #place: string;
  readonly #timer = new Timer<SegmentStream>(this, (stream) => stream.#onTimer());
  readonly #log = new OccasionalLog((text) => logger.warning(text));
  #waiting: Uint8Array[] = [];
  #bytes = 0;
  #call: GrpcStream | undefined;
  #isConnected = false;
  #isTimed = false;
  #isClosed = false;
  /** Segments that the collector may not have read. */
  #unread = 0;

  constructor(service: GrpcService, maxSegments: number, calls: CallingThread, timers: Timers, events: SegmentEvents) {
    this.#channel = new GrpcChannel(service, calls);
    this.#maxSegments = maxSegments;
    this.#timers = timers;
    this.#events = events;
    this.#place = `the SkyWalking collector in cluster '${service.envoy_grpc?.cluster_name}'`;
  }

  add(segment: Uint8Array): void {
    if (this.#isClosed) return this.#events.dropped(1);
    if (this.#waiting.length >= this.#maxSegments || this.#bytes + segment.length > MAX_BYTES) {
      this.#flush();
      if (this.#waiting.length > 0) return this.#events.dropped(1);
    }
    this.#waiting.push(segment);
    this.#bytes += segment.length;
    this.#flush();
  }

  /** Sends as many segments as possible, and ends the stream. */
  close(): void {
    this.#flush();
    this.#isClosed = true;
    this.#channel.close();
    if (this.#call === undefined) return this.#drop();
    if (this.#isConnected) this.#finish();
    // The collector may never connect, or never answer.
    this.#timers.reschedule(this.#timer, CLOSE_MS);
  }

  /** Sends the waiting segments, and ends the stream. */
  #finish(): void {
    this.#flush();
    this.#call?.end();
  }

  /** Counts the segments that may have been lost at the end. */
  #drop(): void {
    const lost = this.#waiting.length + this.#unread;
    if (lost > 0) this.#events.dropped(lost);
    this.#waiting = [];
    this.#bytes = this.#unread = 0;
    this.#timers.cancel(this.#timer);
  }

  #flush(): void {
    if (this.#call === undefined) this.#open();
    const call = this.#call;
    if (call === undefined || !this.#isConnected) return;
    if (call.queuedBytes === 0) this.#unread = 0;
    if (call.queuedBytes > MAX_UNREAD_BYTES && !this.#isClosed) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    for (const segment of waiting) {
      call.write(segment);
      this.#unread++;
      this.#events.sent();
    }
    if (waiting.length > 1) this.#events.flushed(waiting.length);
  }

  #open(): void {
    if (this.#isTimed || this.#isClosed) return;
    this.#isConnected = false;
    try {
      this.#call = this.#channel.retriedStream(METHOD, {
        onConnected: () => this.#connected(),
        onMessage: () => {},
        onDrained: () => {
          if (this.#waiting.length > 0) this.#flush();
        },
        onEnd: (status) => this.#ended(status),
      });
    } catch (error) {
      // For example, there is no room for the request.
      this.#ended({ code: GrpcCode.ResourceExhausted, details: messageOf(error) });
    }
  }

  #connected(): void {
    this.#isConnected = true;
    // It may be called before the call is returned.
    if (this.#call === undefined) return;
    if (this.#isClosed) this.#finish();
    else this.#flush();
  }

  #ended({ code, details }: GrpcStatus): void {
    this.#call = undefined;
    this.#isConnected = false;
    if (this.#isClosed) {
      // The collector ends the stream when it has read everything.
      if (code === GrpcCode.Ok) this.#unread = 0;
      return this.#drop();
    }
    if (this.#unread > 0) this.#events.dropped(this.#unread);
    this.#unread = 0;
    const reason = code === GrpcCode.Ok ? 'it has ended the stream' : `${code}, ${details}`;
    this.#log.log(`${this.#place} accepts no segments: ${reason}`);
    this.#isTimed = true;
    this.#timers.reschedule(this.#timer, RETRY_MS);
  }

  #onTimer(): void {
    this.#isTimed = false;
    if (!this.#isClosed) return this.#flush();
    this.#call?.cancel();
    this.#call = undefined;
    this.#drop();
  }
}
