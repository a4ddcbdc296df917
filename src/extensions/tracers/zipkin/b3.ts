// B3 propagation: the trace context in a single header (b3) or in several (x-b3-*). https://github.com/openzipkin/b3-propagation

import { type HeaderBlock, headerKey } from '../../sdk.js';

const B3 = headerKey('b3');
const TRACE_ID = headerKey('x-b3-traceid');
const SPAN_ID = headerKey('x-b3-spanid');
const PARENT_ID = headerKey('x-b3-parentspanid');
const SAMPLED = headerKey('x-b3-sampled');

const SINGLE = /^([0-9a-f]{16}|[0-9a-f]{32})-([0-9a-f]{16})(?:-([01d])(?:-([0-9a-f]{16}))?)?$/i;
const ID = /^[0-9a-f]{1,16}$/i;
const TRACE = /^(?:[0-9a-f]{1,16}|[0-9a-f]{32})$/i;
const ID_DIGITS = 16;

export interface B3Context {
  /** In lower case; undefined: the caller sent only a sampling decision. */
  readonly ids: B3Ids | undefined;
  /** Undefined: the caller sent no sampling decision. */
  readonly isSampled: boolean | undefined;
  /** The context was received in the single header, and is sent in it. */
  readonly isSingle: boolean;
}

export interface B3Ids {
  readonly traceId: string;
  readonly spanId: string;
  /** '' if there is none. */
  readonly parentId: string;
}

/** Returns the context in a request's headers; undefined: there is none; 'invalid': it cannot be read. */
export function readB3(headers: HeaderBlock): B3Context | 'invalid' | undefined {
  const single = headers.get(B3);
  if (single !== undefined) return readSingle(single);
  const sampled = headers.get(SAMPLED);
  const traceId = headers.get(TRACE_ID);
  const spanId = headers.get(SPAN_ID);
  const isSampled = sampled === undefined ? undefined : sampled === '1' || sampled === 'true';
  if (traceId === undefined || spanId === undefined)
    return isSampled === undefined ? undefined : { ids: undefined, isSampled, isSingle: false };
  const parentId = headers.get(PARENT_ID) ?? '';
  if (!TRACE.test(traceId) || !ID.test(spanId) || (parentId !== '' && !ID.test(parentId))) return 'invalid';
  return { ids: { traceId: id(traceId), spanId: id(spanId), parentId: id(parentId) }, isSampled, isSingle: false };
}

export function writeB3(
  headers: HeaderBlock,
  { parentId, spanId, traceId }: B3Ids,
  isSampled: boolean,
  isSingle: boolean,
): void {
  const sampled = isSampled ? '1' : '0';
  if (isSingle) {
    const parent = parentId === '' ? '' : `-${parentId}`;
    return headers.set(B3, `${traceId}-${spanId}-${sampled}${parent}`);
  }
  headers.set(TRACE_ID, traceId);
  headers.set(SPAN_ID, spanId);
  if (parentId !== '') headers.set(PARENT_ID, parentId);
  headers.set(SAMPLED, sampled);
}

function readSingle(text: string): B3Context | 'invalid' {
  if (text === '0' || text === '1' || text === 'd') return { ids: undefined, isSampled: text !== '0', isSingle: true };
  const match = SINGLE.exec(text);
  if (match === null) return 'invalid';
  const [, traceId = '', spanId = '', sampled, parentId = ''] = match;
  const ids = { traceId: id(traceId), spanId: id(spanId), parentId: id(parentId) };
  return { ids, isSampled: sampled === undefined ? undefined : sampled !== '0', isSingle: true };
}

function id(text: string): string {
  return text === '' ? '' : text.toLowerCase().padStart(ID_DIGITS, '0');
}
