// Mutated trace contexts of clients: the fields of W3C Trace Context, B3, SkyWalking and Datadog. They run in this process. A context that
// is read must be the same after it was written to a request.

import { isDeepStrictEqual } from 'node:util';
import type { Random } from '../../src/common/random.js';
import { type HeaderKey, headerKey } from '../../src/common/text/header-names.js';
import { readTraceParent, writeTraceParent } from '../../src/extensions/tracers/common/w3c.js';
import { readDatadog, writeDatadog } from '../../src/extensions/tracers/datadog/context.js';
import { readSw8, writeSw8 } from '../../src/extensions/tracers/skywalking/sw8.js';
import { readB3, writeB3 } from '../../src/extensions/tracers/zipkin/b3.js';
import { HeaderBlock } from '../../src/http/headers/header-block.js';
import { Memory } from '../../src/io/memory.js';
import { mutateBytes, pick } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 200;
const MAX_FIELDS = 6;
/** As for a head. */
const MAX_VALUE = 60 * 1024;
const MAX_STATE = 256;
const SPAN = '00f067aa0ba902b7';
const LAYOUT = { receiveBytes: 65_536, scratchBytes: 4 * 1024 * 1024, arenaBytes: 4 * 1024 * 1024 };

const KEYS = [
  ...['traceparent', 'tracestate', 'b3', 'x-b3-traceid', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'sw8'],
  ...['x-datadog-trace-id', 'x-datadog-parent-id', 'x-datadog-sampling-priority', 'x-datadog-origin', 'x-datadog-tags'],
].map((name) => headerKey(name));

const SEEDS = [
  ...['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'dd=s:2;o:rum;p:00f067aa0ba902b7;t.dm:-4;n:x,a=1'],
  ...['80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90', '463ac35c9f6413ad', '1', 'd', 'true'],
  ...['1-dHJhY2U=-c2Vn-3-cHN2Yw==-cGluc3Q=-L2Vw-MS4yLjMuNDo4MA==', '9532127138774266268', '123', '-1', 'rum'],
  '_dd.p.dm=-4,_dd.p.tid=0af7651916cd43dd',
].map((text) => Buffer.from(text));
const TOKENS = [
  '-',
  ',',
  ';',
  ':',
  '=',
  '~',
  '00',
  'ff',
  '0000000000000000',
  '1e308',
  '99999999999999999999',
  'dd=',
  't.',
].map((text) => Buffer.from(text));

/** Throws a Finding when a context causes an exception, or changes on its way. Returns a summary. */
export async function fuzzTraceContexts(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const memory = new Memory(LAYOUT);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let contexts = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const fields: (readonly [HeaderKey, string])[] = [];
      for (let more = 1 + random.below(MAX_FIELDS); more > 0; more--)
        fields.push([pick(random, KEYS), fieldValue(random)]);
      contexts += attempt(memory, fields);
      memory.endTurn();
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${contexts} contexts); no defect`;
}

function fieldValue(random: Random): string {
  const text = mutateBytes(random, SEEDS, TOKENS).toString('latin1');
  return text.replace(/[\0\r\n]/g, '').slice(0, MAX_VALUE);
}

/** Returns the number of contexts that were read. */
function attempt(memory: Memory, fields: readonly (readonly [HeaderKey, string])[]): number {
  try {
    return CHECKS.filter((check) => {
      const head = new HeaderBlock(memory);
      for (const [key, value] of fields) head.add(key, value);
      return check(head);
    }).length;
  } catch (error) {
    const input = JSON.stringify(fields.map(([{ name }, value]) => `${name}: ${value}`));
    throw new Finding(`${(error as Error).stack} for ${input}`);
  }
}

/** Each reads a context, writes it and compares. Returns false without a context. */
const CHECKS: readonly ((head: HeaderBlock) => boolean)[] = [checkW3c, checkB3, checkSw8, checkDatadog];

function checkW3c(head: HeaderBlock): boolean {
  const read = readTraceParent(head);
  if (typeof read !== 'object') return false;
  writeTraceParent(head, read.traceId, SPAN, read.isSampled, read.state);
  same({ ...read, spanId: SPAN }, readTraceParent(head));
  return true;
}

function checkB3(head: HeaderBlock): boolean {
  const read = readB3(head);
  if (typeof read !== 'object' || read.ids === undefined) return false;
  const ids = { ...read.ids, spanId: SPAN };
  writeB3(head, ids, read.isSampled ?? false, read.isSingle);
  const written = readB3(head);
  same({ ...read, ids, isSampled: read.isSampled ?? false }, written);
  return true;
}

function checkSw8(head: HeaderBlock): boolean {
  const read = readSw8(head);
  if (typeof read !== 'object') return false;
  if (!(read.spanId >= 0 && read.spanId < 2 ** 31)) throw new Error(`the number ${read.spanId} is not an int32`);
  writeSw8(head, read);
  same(read, readSw8(head));
  return true;
}

function checkDatadog(head: HeaderBlock): boolean {
  const read = readDatadog(head);
  if (read === undefined) return false;
  const priority = read.priority ?? 1;
  writeDatadog(head, read, SPAN, priority);
  const { low, parentId, priority: sent } = readDatadog(head)!;
  same({ low: read.low, parentId: SPAN, priority }, { low, parentId, priority: sent });
  const parent = readTraceParent(head);
  if (typeof parent !== 'object' || !parent.traceId.endsWith(read.low))
    throw new Error('traceparent has another trace');
  const [own = ''] = parent.state.split(',');
  if (own.length > MAX_STATE || !own.startsWith(`dd=s:${priority};p:${SPAN}`)) throw new Error(`tracestate has ${own}`);
  return true;
}

function same(expected: unknown, found: unknown): void {
  if (!isDeepStrictEqual(found, expected))
    throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}
