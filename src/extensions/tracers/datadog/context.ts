// Datadog's trace context: x-datadog-* fields, or those of W3C Trace Context with Datadog's part of tracestate.

import { type HeaderBlock, headerKey } from '../../sdk.js';
import { readTraceParent, writeTraceParent } from '../common/w3c.js';

const TRACE_ID = headerKey('x-datadog-trace-id');
const PARENT_ID = headerKey('x-datadog-parent-id');
const PRIORITY = headerKey('x-datadog-sampling-priority');
const ORIGIN = headerKey('x-datadog-origin');
const TAGS = headerKey('x-datadog-tags');
const TAG_PREFIX = '_dd.p.';
/** The upper half of a trace ID. */
export const HIGH_ID = `${TAG_PREFIX}tid`;
const MAX_TAGS_LENGTH = 512;
const MAX_STATES = 31;

export interface DatadogContext {
  /** Lower and upper half of the trace's ID, 16 hexadecimal digits; the upper one may be ''. */
  readonly low: string;
  readonly high: string;
  /** The caller's span, 16 hexadecimal digits. */
  readonly parentId: string;
  /** Undefined: not decided. Above 0: the trace is kept. */
  readonly priority: number | undefined;
  readonly origin: string;
  /** Tags that pass from hop to hop. */
  readonly tags: ReadonlyMap<string, string>;
  /** Other members of tracestate. */
  readonly others: readonly string[];
}

/** Returns undefined without a context that can be read. */
export function readDatadog(headers: HeaderBlock): DatadogContext | undefined {
  const low = hexOf(headers.get(TRACE_ID));
  const parentId = hexOf(headers.get(PARENT_ID));
  if (low === undefined || parentId === undefined) return readW3c(headers);
  const tags = parseTags(headers.get(TAGS) ?? '');
  const priority = priorityOf(headers.get(PRIORITY));
  const high = tags.get(HIGH_ID) ?? '';
  const origin = headers.get(ORIGIN) ?? '';
  return { low, high: /^[0-9a-f]{16}$/.test(high) ? high : '', parentId, priority, origin, tags, others: [] };
}

export function writeDatadog(headers: HeaderBlock, context: DatadogContext, spanId: string, priority: number): void {
  const { high, low, origin, others, tags } = context;
  headers.set(TRACE_ID, decimalOf(low));
  headers.set(PARENT_ID, decimalOf(spanId));
  headers.set(PRIORITY, String(priority));
  if (origin !== '') headers.set(ORIGIN, origin);
  const pairs = [...tags].map(([name, value]) => `${name}=${value}`).join(',');
  if (pairs !== '' && pairs.length <= MAX_TAGS_LENGTH) headers.set(TAGS, pairs);
  const own = [`s:${priority}`, `p:${spanId}`, ...(origin === '' ? [] : [`o:${origin}`])];
  for (const [name, value] of tags)
    if (name !== HIGH_ID) own.push(`t.${name.slice(TAG_PREFIX.length)}:${value.replaceAll('=', '~')}`);
  const state = [`dd=${own.join(';')}`, ...others].join(',');
  writeTraceParent(headers, high.padStart(16, '0') + low, spanId, priority > 0, state);
}

export function decimalOf(hex: string): string {
  return BigInt(`0x${hex}`).toString();
}

function readW3c(headers: HeaderBlock): DatadogContext | undefined {
  const parent = readTraceParent(headers);
  if (parent === undefined || parent === 'invalid') return undefined;
  const members = parent.state.split(',').map((member) => member.trim());
  const own = new Map<string, string>();
  for (const pair of (members.find((member) => member.startsWith('dd=')) ?? '').slice(3).split(';')) {
    const colon = pair.indexOf(':');
    if (colon > 0) own.set(pair.slice(0, colon), pair.slice(colon + 1));
  }
  const tags = new Map<string, string>();
  for (const [name, value] of own)
    if (name.startsWith('t.') && isTag(value)) tags.set(TAG_PREFIX + name.slice(2), value.replaceAll('~', '='));
  const high = parent.traceId.slice(0, 16);
  if (high !== '0'.repeat(16)) tags.set(HIGH_ID, high);
  const told = priorityOf(own.get('s'));
  return {
    low: parent.traceId.slice(16),
    high,
    parentId: parent.spanId,
    priority: told !== undefined && told > 0 === parent.isSampled ? told : Number(parent.isSampled),
    origin: own.get('o') ?? '',
    tags,
    others: members.filter((member) => member !== '' && !member.startsWith('dd=')).slice(0, MAX_STATES),
  };
}

/** As in Envoy, one invalid pair invalidates all. */
function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  if (text === '' || text.length > MAX_TAGS_LENGTH) return tags;
  for (const pair of text.split(',')) {
    const equals = pair.indexOf('=');
    if (equals <= 0) return new Map();
    const name = pair.slice(0, equals);
    if (name.startsWith(TAG_PREFIX)) tags.set(name, pair.slice(equals + 1));
  }
  return tags;
}

function isTag(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value);
}

/** Returns the 16 hexadecimal digits of a decimal ID. */
function hexOf(text: string | undefined): string | undefined {
  if (text === undefined || !/^\d{1,20}$/.test(text)) return undefined;
  const number = BigInt(text);
  return number === 0n || number >> 64n !== 0n ? undefined : number.toString(16).padStart(16, '0');
}

function priorityOf(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d{1,3}$/.test(text) ? Number(text) : undefined;
}
