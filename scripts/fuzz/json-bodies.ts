// Mutated JSON bodies for the filter json_to_metadata. They run in this process.

import { StreamInfo } from '../../src/access-log/stream/stream-info.js';
import type { Random } from '../../src/common/random.js';
import { JsonToMetadataFilter } from '../../src/extensions/filters/http/json-to-metadata/json-to-metadata-filter.js';
import { compileRules } from '../../src/extensions/filters/http/json-to-metadata/rules.js';
import { requestHead } from '../../test/http/routing/heads.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_TEXT_BYTES = 8 * 1024;
const TYPES = ['PROTOBUF_VALUE', 'STRING', 'NUMBER'] as const;
const RULES = compileRules(
  {
    request_rules: {
      rules: TYPES.flatMap((type) =>
        [['a'], ['a', 'b'], ['__proto__', 'b']].map((path) => ({
          selectors: path.map((key) => ({ key })),
          on_present: { metadata_namespace: 'ns', key: `${type} ${path.join('.')}`, type },
          on_missing: { metadata_namespace: 'ns', key: 'missing', value: true },
          on_error: { metadata_namespace: 'ns', key: 'error', value: true },
        })),
      ),
    },
  },
  '',
);

/** Throws a Finding when a body causes an exception or sets metadata that no rule describes. Returns a summary. */
export async function fuzzJsonBodies(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const head = requestHead('POST /', 'content-type: application/json');
  const end = performance.now() + durationMs;
  let inputs = 0;
  let valid = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const body = mutateBytes(random, SEEDS, TOKENS);
      const info = new StreamInfo();
      const stream = { info, readRequestBytes: () => body };
      const filter = new JsonToMetadataFilter(stream as never, RULES, head.memory, { increment() {} } as never);
      try {
        filter.decodeHeaders(head, false);
        filter.decodeTrailers();
      } catch (error) {
        throw new Finding(`${String(error)} for ${body.toString('hex')}`);
      }
      const found = Object.entries(info.dynamicMetadata?.get('ns') ?? {});
      for (const [key, value] of found)
        if (!isExpected(key, value))
          throw new Finding(`${key} is ${JSON.stringify(value)} for ${body.toString('hex')}`);
      if (found.some(([key]) => key !== 'missing' && key !== 'error')) valid++;
    }
    if (Object.keys(Object.prototype).length > 0) throw new Finding('the prototype of all objects has changed');
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${valid} with values); no defect`;
}

function isExpected(key: string, value: unknown): boolean {
  if (key === 'missing' || key === 'error') return value === true;
  if (key.startsWith('NUMBER')) return Number.isFinite(value);
  if (typeof value === 'string') return Buffer.byteLength(value) <= MAX_TEXT_BYTES;
  return !key.startsWith('STRING') && (typeof value === 'boolean' || Number.isFinite(value));
}

const SEEDS = [
  '{"a":{"b":"c"},"d":[1,null,{"e":false}]}',
  '{"a":1.5e3}',
  '{"a":"text","__proto__":{"b":1}}',
  '{"a":{"b":true}}',
  '{"a":" 12 "}',
  '[]',
].map((text) => Buffer.from(text));

const TOKENS = [
  '"a":',
  '"b":',
  '"__proto__":{',
  '"constructor":{',
  '1e999',
  '-0',
  '9007199254740993',
  '"1e999"',
  'null',
  '\\ud800',
  '\ufeff',
  '[[[[[[[[',
].map((text) => Buffer.from(text));
