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
/** Maximum length of Datadog's member of a received tracestate, without its name. */
const MAX_READ_STATE = 512;
/** Maximum length of the member that is written. */
const MAX_STATE = 256;
const NO_ID = '0'.repeat(16);

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
  /** Pairs of Datadog's member of tracestate that have no meaning here, joined by semicolons. */
  readonly unknown: string;
  /** Other members of tracestate. */
  readonly others: readonly string[];
  /** The last span of Datadog before the caller's, as tracestate names it; '' without W3C Trace Context. */
  readonly lastId: string;
}

/** Returns undefined without a context that can be read. */
export function readDatadog(headers: HeaderBlock): DatadogContext | undefined {
  const low = hexOf(headers.get(TRACE_ID));
  const parentId = hexOf(headers.get(PARENT_ID));
  const w3c = readW3c(headers);
  if (low === undefined || parentId === undefined) return w3c;
  const tags = parseTags(headers.get(TAGS) ?? '');
  const priority = priorityOf(headers.get(PRIORITY));
  const highId = tags.get(HIGH_ID) ?? '';
  const high = /^[0-9a-f]{16}$/.test(highId) ? highId : '';
  const origin = headers.get(ORIGIN) ?? '';
  const own = { low, high, parentId, priority, origin, tags, unknown: '', others: [], lastId: '' };
  return w3c !== undefined && w3c.low === low && w3c.high === high.padStart(16, '0') ? merged(own, w3c) : own;
}

/** Returns the context of a caller that sends both forms. As in Envoy, traceparent names the nearer span. */
function merged(own: DatadogContext, { lastId, others, parentId, unknown }: DatadogContext): DatadogContext {
  if (parentId === own.parentId) return { ...own, others, unknown };
  return { ...own, others, unknown, parentId, lastId: lastId === NO_ID ? own.parentId : lastId };
}

export function writeDatadog(headers: HeaderBlock, context: DatadogContext, spanId: string, priority: number): void {
  const { high, low, origin, others, tags, unknown } = context;
  headers.set(TRACE_ID, decimalOf(low));
  headers.set(PARENT_ID, decimalOf(spanId));
  headers.set(PRIORITY, String(priority));
  if (origin !== '') headers.set(ORIGIN, origin);
  const pairs = [...tags].map(([name, value]) => `${name}=${value}`).join(',');
  if (pairs !== '' && pairs.length <= MAX_TAGS_LENGTH) headers.set(TAGS, pairs);
  const own = [`dd=s:${priority}`, `p:${spanId}`];
  if (origin !== '') own.push(`o:${stateValue(origin)}`);
  for (const [name, value] of tags)
    if (name !== HIGH_ID) own.push(`t.${stateKey(name.slice(TAG_PREFIX.length))}:${stateValue(value)}`);
  if (unknown !== '') own.push(...unknown.split(';'));
  const state = [withinLimit(own), ...others].join(',');
  writeTraceParent(headers, high.padStart(16, '0') + low, spanId, priority > 0, state);
}

/** Characters that tracestate, or Datadog's member of it, uses itself are replaced as in Envoy. */
function stateKey(text: string): string {
  return text.replace(/[^\x21-\x7e]|[,;=]/g, '_');
}

function stateValue(text: string): string {
  return text.replace(/[^\x20-\x7e]|[,;~]/g, '_').replaceAll('=', '~');
}

/** Joins the first pairs that fit. */
function withinLimit(pairs: string[]): string {
  let text = pairs.join(';');
  while (text.length > MAX_STATE) text = text.slice(0, text.lastIndexOf(';'));
  return text;
}

export function decimalOf(hex: string): string {
  return BigInt(`0x${hex}`).toString();
}

function readW3c(headers: HeaderBlock): DatadogContext | undefined {
  const parent = readTraceParent(headers);
  if (parent === undefined || parent === 'invalid') return undefined;
  const members = parent.state.split(',').map((member) => member.trim());
  const { known: own, tags, unknown } = ownPairs(members.find((member) => member.startsWith('dd=')) ?? '');
  const high = parent.traceId.slice(0, 16);
  if (high !== '0'.repeat(16)) tags.set(HIGH_ID, high);
  const told = priorityOf(own.get('s'));
  return {
    low: parent.traceId.slice(16),
    high,
    parentId: parent.spanId,
    priority: told !== undefined && told > 0 === parent.isSampled ? told : Number(parent.isSampled),
    origin: (own.get('o') ?? '').replaceAll('~', '='),
    tags,
    unknown,
    others: members.filter((member) => member !== '' && !member.startsWith('dd=')).slice(0, MAX_STATES),
    lastId: own.get('p') ?? NO_ID,
  };
}

interface OwnPairs {
  readonly known: ReadonlyMap<string, string>;
  readonly tags: Map<string, string>;
  readonly unknown: string;
}

/** Reads Datadog's member of tracestate. */
function ownPairs(member: string): OwnPairs {
  const known = new Map<string, string>();
  const tags = new Map<string, string>();
  const unknown: string[] = [];
  const text = member.slice(3);
  for (const pair of text.length > MAX_READ_STATE ? [] : text.split(';')) {
    const colon = pair.indexOf(':');
    if (colon <= 0) continue;
    const name = pair.slice(0, colon);
    const value = pair.slice(colon + 1);
    if (name === 's' || name === 'o' || name === 'p') known.set(name, value);
    else if (!name.startsWith('t.')) unknown.push(pair);
    else if (isTag(value)) tags.set(TAG_PREFIX + name.slice(2), value.replaceAll('~', '='));
  }
  return { known, tags, unknown: unknown.join(';') };
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
