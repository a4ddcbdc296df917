// SkyWalking's propagation: the field sw8 (https://skywalking.apache.org/docs/main/latest/en/api/x-process-propagation-headers-v3/).

import { type HeaderBlock, headerKey } from '../../sdk.js';

const SW8 = headerKey('sw8');
const FIELDS = 8;
/** The number of a span is an int32. */
const SPAN_ID = /^\d{1,10}$/;
const MAX_SPAN_ID = 2 ** 31 - 1;

/** The span of the caller. Texts have one character per byte. */
export interface CallerSpan {
  readonly traceId: string;
  readonly segmentId: string;
  readonly spanId: number;
  readonly service: string;
  readonly instance: string;
  readonly endpoint: string;
  /** The address that the caller has used. */
  readonly address: string;
}

/** Returns undefined without a context that can be read. */
export function readSw8(headers: HeaderBlock): CallerSpan | undefined {
  const fields = headers.get(SW8)?.split('-', FIELDS + 1) ?? [];
  if (fields.length !== FIELDS || !/^[01]$/.test(fields[0]!) || !SPAN_ID.test(fields[3]!)) return undefined;
  const spanId = Number(fields[3]);
  if (spanId > MAX_SPAN_ID) return undefined;
  const [, traceId, segmentId, , service, instance, endpoint, address] = fields.map(decoded);
  if (traceId === '' || segmentId === '') return undefined;
  return {
    traceId: traceId!,
    segmentId: segmentId!,
    spanId,
    service: service!,
    instance: instance!,
    endpoint: endpoint!,
    address: address!,
  };
}

export function writeSw8(headers: HeaderBlock, span: CallerSpan): void {
  const { address, endpoint, instance, segmentId, service, spanId, traceId } = span;
  const rest = [service, instance, endpoint, address].map(encoded);
  headers.set(SW8, ['1', encoded(traceId), encoded(segmentId), spanId, ...rest].join('-'));
}

function decoded(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1');
}

function encoded(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('base64');
}
