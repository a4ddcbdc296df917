// Mutated expressions over streams with mutated heads. They run in this process. Compiling throws BatonErrors only, evaluating throws nothing
// and takes little time, and every value can be printed.

import { expressionOfText } from '../../src/access-log/attributes/stream-expression.js';
import { StreamInfo } from '../../src/access-log/stream/stream-info.js';
import { TextHeaders } from '../../src/access-log/stream/text-headers.js';
import { celJson, celText } from '../../src/cel/output.js';
import { BatonError } from '../../src/common/errors/errors.js';
import type { Random } from '../../src/common/random.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 50;
const MAX_EXPRESSION = 4096;
const MAX_VALUE = 8192;
/** Of one evaluation: thousands of times what it needs. */
const MAX_MS = 1000;
const ALL = { enable_string_concat: true, enable_string_conversion: true, enable_string_functions: true };

const SEEDS = [
  "request.path.startsWith('/a') && request.headers['x-id'] in ['1', '2'] || has(request.nope)",
  "request.headers['x-id'].matches(request.headers['x-pattern']) ? request.time.getHours(request.headers['x-id']) : 0",
  "request.path.split('/')[1].replace(request.query, request.path).substring(0, 5).upperAscii() + string(1u)",
  "{'a': [1, 2u, 3.5], 1: b'x'}['a'][0] + int(request.headers['x-id']) % 7 == -1",
  "timestamp(request.headers['x-id']) - duration(request.query) < request.time && metadata.filter_metadata.ns.k.l[0] == 1",
  "['a', request.path].join(',').indexOf('a', 3) >= size(request.headers) || filter_state['k'] == bytes(request.path)",
].map((text) => Buffer.from(text));
const TOKENS = [
  ...[
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '.',
    ',',
    '?',
    ':',
    '!',
    '-',
    '&&',
    '||',
    '==',
    ' in ',
    '+',
    '*',
    "'",
    '"""',
    'r"',
    'b"',
    '\\x',
  ],
  ...[
    'size(',
    '.matches(',
    '.replace(',
    '.split(',
    '.join(',
    'string(',
    'request',
    'headers',
    'has(',
    '1u',
    '1e308',
    '9223372036854775807',
  ],
].map((text) => Buffer.from(text));
const VALUES = [
  '1',
  '(a+)+$',
  'a{99}',
  'America/New_York',
  '-12:00',
  '1.5h',
  '2020-01-01T00:00:00Z',
  'é',
  '/a/b?c',
  '\xff\xfe',
].map((text) => Buffer.from(text, 'latin1'));

/** Throws a Finding when an expression causes an exception or takes long. Returns a summary. */
export async function fuzzExpressions(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  let valid = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const text = mutateBytes(random, SEEDS, TOKENS).toString().slice(0, MAX_EXPRESSION);
      if (evaluate(text, streamOf(random))) valid++;
    }
    await new Promise(setImmediate);
  }
  return `${inputs} expressions, ${valid} of them valid`;
}

function streamOf(random: Random): StreamInfo {
  const value = () => mutateBytes(random, VALUES, VALUES).toString('latin1').slice(0, MAX_VALUE);
  const info = new StreamInfo();
  info.requestHeaders = TextHeaders.ofRequest('GET', value(), { 'x-id': value(), 'x-pattern': value() });
  info.ownDynamicMetadata().set('ns', { k: { l: [1, value(), null] } });
  info.ownFilterState().set('k', { text: value(), isReadOnly: false, sharing: 'NONE' });
  return info;
}

/** Returns whether the expression is valid. */
function evaluate(text: string, info: StreamInfo): boolean {
  const start = performance.now();
  try {
    const value = expressionOfText(text, ALL).evaluate(info);
    if (value !== undefined) JSON.stringify([celText(value), celJson(value)]);
  } catch (error) {
    if (error instanceof BatonError) return false;
    throw new Finding(`${(error as Error).stack} for ${JSON.stringify(text)}`);
  }
  const took = performance.now() - start;
  if (took > MAX_MS) throw new Finding(`an expression takes ${took} ms: ${JSON.stringify(text)}`);
  return true;
}
