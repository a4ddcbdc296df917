// The stream to a processor for one request.

import { type GrpcCallEvents, type GrpcChannel, GrpcCode, type GrpcStream } from '../../../grpc-sdk.js';
import type { StreamInfo } from '../../../sdk.js';
import type { CallRecord } from './call-record.js';

const METHOD = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
/** Before each message of gRPC. */
const PREFIX_BYTES = 5;

/** No event follows onClosed() and onFailed(), nor close(). */
export interface ProcessorEvents {
  onAnswer(message: Uint8Array): void;
  /** Called when the processor needs no more messages. */
  onClosed(): void;
  /** `code`: a gRPC status. `details` are for %RESPONSE_CODE_DETAILS%. */
  onFailed(code: number, details: string): void;
  /** Called when the processor has not answered a question that was sent by HTTP. */
  onRefused(reason: string): void;
  /** Called when all messages were passed to the connection. */
  onDrained(): void;
}

export interface ProcessorStream {
  /** Bytes of messages that were not passed to the connection. */
  readonly queuedBytes: number;
  send(message: Uint8Array): void;
  /** Stops and resumes the delivery of answers. */
  pause(): void;
  resume(): void;
  /** Tells the processor that no message follows. */
  end(): void;
  /** Ends the stream; no event follows. */
  close(): void;
}

/** Begins a gRPC call, with the retries of the service. Returns undefined when it has ended already, after an event. */
export function startGrpcStream(
  channel: GrpcChannel,
  info: StreamInfo,
  record: CallRecord,
  events: ProcessorEvents,
): ProcessorStream | undefined {
  const stream = new GrpcProcessor(record, events);
  const call = channel.retriedStream(METHOD, stream, info);
  if (call === undefined) return undefined;
  stream.call = call;
  return stream;
}

class GrpcProcessor implements ProcessorStream, GrpcCallEvents {
  /** Answers that wait for the next hop change what follows them. */
  readonly endsInOrder = true;
  call: GrpcStream | undefined;
  readonly #record: CallRecord;
  readonly #events: ProcessorEvents;
  #hasHead = false;

  constructor(record: CallRecord, events: ProcessorEvents) {
    this.#record = record;
    this.#events = events;
  }

  get queuedBytes(): number {
    return this.call?.queuedBytes ?? 0;
  }

  send(message: Uint8Array): void {
    this.#record.bytesSent += PREFIX_BYTES + message.length;
    this.call?.write(message);
  }

  pause(): void {
    this.call?.pause();
  }

  resume(): void {
    this.call?.resume();
  }

  end(): void {
    this.call?.end();
  }

  close(): void {
    this.call?.cancel();
    this.call = undefined;
  }

  // ── GrpcCallEvents ───────────────────────────────────────────────────────────────────────────────────────────────

  onHead(): void {
    this.#hasHead = true;
  }

  onMessage(message: Buffer): void {
    this.#record.bytesReceived += PREFIX_BYTES + message.length;
    this.#events.onAnswer(message);
  }

  onDrained(): void {
    this.#events.onDrained();
  }

  onEnd({ code, details }: { readonly code: number; readonly details: string }): void {
    this.call = undefined;
    if (code === GrpcCode.Ok) this.#events.onClosed();
    // As in Envoy, a status that the processor itself has sent is one of an answered request.
    else this.#events.onFailed(code, this.#hasHead ? 'via_upstream' : details);
  }
}
