// An attached tap as filters on a worker use it: what is traced, how it is written, and where it goes.

import type { OutputSink_Format, TapConfig } from '../../../../config/generated/api.js';
import { MatchRules } from './matching/match-rules.js';
import { BinaryFormat } from './traces/binary-format.js';
import { JsonFormat } from './traces/json-format.js';
import type { TraceFormat } from './traces/trace.js';

/** Bytes of one body in a trace when the configuration does not say. */
const DEFAULT_BODY_BYTES = 1024;

/** Bytes of bodies that a worker keeps for traces which are not sent yet, of all requests together. */
const HELD_LIMIT = 64 * 1024 * 1024;

export class ActiveTap {
  readonly rules: MatchRules;
  readonly format: TraceFormat;
  /** Traces are sent piece by piece. */
  readonly isStreaming: boolean;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  /** It was detached. */
  isOver = false;
  readonly #send: (trace: Uint8Array<ArrayBuffer>) => boolean;
  #heldBytes = 0;

  /** @param send gives a trace away; false when it is lost */
  constructor(config: TapConfig, send: (trace: Uint8Array<ArrayBuffer>) => boolean) {
    const output = config.output_config!;
    this.rules = new MatchRules(config);
    this.format = formatOf(output.sinks![0]!.format);
    this.isStreaming = output.streaming ?? false;
    this.maxRequestBytes = output.max_buffered_rx_bytes ?? DEFAULT_BODY_BYTES;
    this.maxResponseBytes = output.max_buffered_tx_bytes ?? DEFAULT_BODY_BYTES;
    this.#send = send;
  }

  /** False when the trace is lost. */
  send(trace: Uint8Array<ArrayBuffer>): boolean {
    return !this.isOver && this.#send(trace);
  }

  /** Whether so many bytes of a body may be kept; release() gives them back. */
  tryHold(bytes: number): boolean {
    if (this.#heldBytes + bytes > HELD_LIMIT) return false;
    this.#heldBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

function formatOf(format: OutputSink_Format | undefined): TraceFormat {
  switch (format) {
    case 'PROTO_BINARY_LENGTH_DELIMITED':
      return new BinaryFormat();
    case 'JSON_BODY_AS_STRING':
      return new JsonFormat('as_string');
    default:
      return new JsonFormat('as_bytes');
  }
}
