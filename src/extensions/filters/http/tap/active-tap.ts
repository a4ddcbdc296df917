// An attached tap as filters on a worker use it: match rules, format, and destination.

import type { OutputSink_Format, TapConfig } from '../../../../config/generated/api.js';
import { MatchRules } from './matching/match-rules.js';
import { BinaryFormat } from './traces/binary-format.js';
import { JsonFormat } from './traces/json-format.js';
import type { TraceFormat } from './traces/trace.js';

/** Default limit for the bytes of one body in a trace. */
const DEFAULT_BODY_BYTES = 1024;

/** Maximum bytes of bodies that a worker holds for unsent traces, of all requests together. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

export class ActiveTap {
  readonly rules: MatchRules;
  readonly format: TraceFormat;
  /** Traces are sent piece by piece. */
  readonly isStreaming: boolean;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  /** The tap was detached. */
  isOver = false;
  readonly #send: (trace: Uint8Array<ArrayBuffer>) => boolean;
  #heldBytes = 0;

  /** @param send transfers a trace to the primary; returns false if it is lost */
  constructor(config: TapConfig, send: (trace: Uint8Array<ArrayBuffer>) => boolean) {
    const output = config.output_config!;
    this.rules = new MatchRules(config);
    this.format = formatOf(output.sinks![0]!.format);
    this.isStreaming = output.streaming ?? false;
    this.maxRequestBytes = output.max_buffered_rx_bytes ?? DEFAULT_BODY_BYTES;
    this.maxResponseBytes = output.max_buffered_tx_bytes ?? DEFAULT_BODY_BYTES;
    this.#send = send;
  }

  /** Returns false if the trace is lost. */
  send(trace: Uint8Array<ArrayBuffer>): boolean {
    return !this.isOver && this.#send(trace);
  }

  /** Reserves memory for bytes of a body; release() frees it. Returns false if there is none. */
  tryHold(bytes: number): boolean {
    if (this.#heldBytes + bytes > MAX_HELD_BYTES) return false;
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
