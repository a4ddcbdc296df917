// What the filter has done for one request, as an object of the filter state for access logs.

import type { Json, Struct } from '../../../../config/generated/api.js';
import { writeStruct } from '../../../messages/wire.js';
import { type FilterStateObject, ProtobufWriter } from '../../../sdk.js';
import { Part } from './question.js';

const STRUCT = 'type.googleapis.com/google.protobuf.Struct';

/** What the processor has done to a part of a message. */
export const enum Effect {
  None = 0,
  Applied = 1,
  Rejected = 2,
}

/** The questions about one part of a message. Times are in microseconds. */
interface PartCalls {
  count: number;
  status: number;
  totalUs: number;
  maxUs: number;
  effect: Effect;
}

/** The names of parts in the object and in its short form. */
const PARTS = [
  { part: Part.Headers, name: 'header', letter: 'h' },
  { part: Part.Body, name: 'body', letter: 'b' },
  { part: Part.Trailers, name: 'trailer', letter: 't' },
] as const;

export class CallRecord implements FilterStateObject {
  readonly isReadOnly = false;
  readonly sharing = 'NONE';
  readonly #cluster: string;
  readonly #request = newCalls();
  readonly #response = newCalls();
  /** Of the messages, with their gRPC prefixes. */
  bytesSent = 0;
  bytesReceived = 0;
  /** The gRPC status of a call that has failed before the first question. */
  statusBeforeFirstQuestion = 0;
  hasFailedOpen = false;
  hasImmediateResponse = false;

  /** `cluster`: of the processor. */
  constructor(cluster: string) {
    this.#cluster = cluster;
  }

  /** Records a question that has ended. `ms`: how long it took. */
  ended(isRequest: boolean, part: Part, ms: number, status: number): void {
    const calls = this.#of(isRequest, part);
    const us = Math.round(ms * 1000);
    calls.count++;
    calls.status = status;
    calls.totalUs += us;
    calls.maxUs = Math.max(calls.maxUs, us);
  }

  /** Records what an answer has done to a part. */
  affected(isRequest: boolean, part: Part, effect: Effect): void {
    this.#of(isRequest, part).effect = effect;
  }

  /** As in Envoy: `rh:250:0,sb:1:300:0,bs:99,br:30,os:0,ds:processor`. */
  get text(): string {
    const parts: string[] = [];
    for (const [side, calls] of [['r', this.#request] as const, ['s', this.#response] as const]) {
      for (const { letter, part } of PARTS) {
        const { count, status, totalUs } = calls[part];
        if (count > 0) parts.push(`${side}${letter}:${part === Part.Body ? `${count}:` : ''}${totalUs}:${status}`);
      }
    }
    parts.push(`bs:${this.bytesSent}`, `br:${this.bytesReceived}`);
    return [...parts, `os:${this.statusBeforeFirstQuestion}`, `ds:${this.#cluster}`].join(',');
  }

  get json(): string {
    return JSON.stringify(this.#struct());
  }

  get fields(): { readonly [name: string]: string | number } {
    const fields: Record<string, string | number> = {};
    for (const [name, value] of Object.entries(this.#struct()))
      fields[name] = typeof value === 'string' ? value : Number(value);
    return fields;
  }

  get message(): { readonly typeUrl: string; readonly encoded: Uint8Array } {
    const outer = new ProtobufWriter();
    writeStruct(outer, 1, this.#struct());
    // Without the tag and the length of the field.
    const bytes = outer.copy();
    let start = 1;
    while (bytes[start]! > 127) start++;
    return { typeUrl: STRUCT, encoded: bytes.subarray(start + 1) };
  }

  #of(isRequest: boolean, part: Part): PartCalls {
    return (isRequest ? this.#request : this.#response)[part];
  }

  #struct(): Struct {
    const struct: Record<string, Json> = {};
    for (const [side, calls] of [['request', this.#request] as const, ['response', this.#response] as const]) {
      for (const { name, part } of PARTS) {
        const { count, effect, maxUs, status, totalUs } = calls[part];
        const prefix = `${side}_${name}`;
        if (count > 0 && part === Part.Body) {
          struct[`${prefix}_call_count`] = count;
          struct[`${prefix}_total_latency_us`] = totalUs;
          struct[`${prefix}_max_latency_us`] = maxUs;
          struct[`${prefix}_last_call_status`] = status;
        } else if (count > 0) {
          struct[`${prefix}_latency_us`] = totalUs;
          struct[`${prefix}_call_status`] = status;
        }
        struct[`${prefix}_processing_effect`] = effect;
      }
    }
    return {
      ...struct,
      bytes_sent: this.bytesSent,
      bytes_received: this.bytesReceived,
      grpc_status_before_first_call: this.statusBeforeFirstQuestion,
      received_immediate_response: this.hasImmediateResponse,
      failed_open: this.hasFailedOpen,
      destination: this.#cluster,
    };
  }
}

type Calls = { readonly [part in Part]: PartCalls };

function newCalls(): Calls {
  const none = (): PartCalls => ({ count: 0, status: 0, totalUs: 0, maxUs: 0, effect: Effect.None });
  return { [Part.Headers]: none(), [Part.Body]: none(), [Part.Trailers]: none() };
}
