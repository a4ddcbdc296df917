// W3C Trace Context: the fields traceparent and tracestate (https://www.w3.org/TR/trace-context/).

import { type HeaderBlock, headerKey } from '../../sdk.js';

const TRACE_PARENT = headerKey('traceparent');
const TRACE_STATE = headerKey('tracestate');
const FORM = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/i;
const ZEROS = /^0+$/;

/** The context of the caller's span. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** All tracestate fields, joined by commas; '' if there is none. */
  readonly state: string;
}

/** Returns the context in a request's headers; undefined: there is none; 'invalid': it cannot be read. */
export function readTraceParent(headers: HeaderBlock): TraceParent | 'invalid' | undefined {
  const text = headers.get(TRACE_PARENT);
  if (text === undefined) return undefined;
  const match = FORM.exec(text);
  if (match === null) return 'invalid';
  const [, traceId, spanId, flags] = match.map((part) => part.toLowerCase());
  if (ZEROS.test(traceId!) || ZEROS.test(spanId!)) return 'invalid';
  return {
    traceId: traceId!,
    spanId: spanId!,
    isSampled: (Number.parseInt(flags!, 16) & 1) === 1,
    state: traceState(headers),
  };
}

export function writeTraceParent(
  headers: HeaderBlock,
  traceId: string,
  spanId: string,
  isSampled: boolean,
  state: string | undefined,
): void {
  headers.set(TRACE_PARENT, `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`);
  if (state !== undefined) headers.set(TRACE_STATE, state);
}

function traceState(headers: HeaderBlock): string {
  const values: string[] = [];
  for (let index = headers.find(TRACE_STATE); index >= 0; index = headers.findNext(TRACE_STATE, index))
    values.push(headers.memory.text(headers.valueStart(index), headers.valueEnd(index)));
  return values.join(',');
}
