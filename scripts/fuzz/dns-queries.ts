// Mutated DNS queries, as the DNS filter parses and answers them, and mutated tables of external_dns_table. Without sockets.

import type { Random } from '../../src/common/random.js';
import { readTable } from '../../src/extensions/filters/udp/dns-filter/external-table.js';
import {
  encodeResponse,
  parseQuery,
  QueryMistake,
  RecordType,
  ResponseCode,
} from '../../src/extensions/filters/udp/dns-filter/message.js';
import { DomainTable } from '../../src/extensions/filters/udp/dns-filter/table.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const TABLES_PER_STEP = 5;
const MAX_INPUT_MS = 1000;
/** Of a response over UDP. */
const MAX_RESPONSE_BYTES = 512;

const TABLE = JSON.stringify({
  virtual_domains: [
    {
      name: 'www.example.com',
      answer_ttl: '60s',
      endpoint: { address_list: { address: ['10.0.0.1', '2001:db8::1'] } },
    },
    { name: '*.example.org', endpoint: { cluster_name: 'up' } },
    {
      name: 'voip.example.com',
      endpoint: {
        service_list: {
          services: [
            { service_name: 'sip', protocol: { name: 'tcp' }, targets: [{ host_name: 'www.example.com', port: 5060 }] },
          ],
        },
      },
    },
  ],
});

/** Throws a Finding when a query makes the parser throw, or gets a response that is not a response to it. Returns a summary. */
export async function fuzzDnsQueries(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const seeds = [
    query('www.example.com', 1),
    query('a.b.example.org', 28),
    query('_sip._tcp.voip.example.com', 33),
    query('x', 255),
  ];
  const table = new DomainTable(readTable(Buffer.from(TABLE)), true);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let valid = 0;
  let tables = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      if (check(mutateBytes(random, seeds, TOKENS), table)) valid++;
    }
    for (let left = TABLES_PER_STEP; left > 0; left--)
      if (tryTable(mutateBytes(random, [Buffer.from(TABLE)], TOKENS))) tables++;
    await new Promise(setImmediate);
  }
  return `${inputs} queries (${valid} valid), ${tables} valid tables; no defect`;
}

function check(input: Buffer, table: DomainTable): boolean {
  const begin = performance.now();
  try {
    const parsed = parseQuery(input);
    const isValid = parsed.mistake === QueryMistake.None;
    table.knows(parsed.name);
    table.find(parsed.name);
    table.findService(parsed.name);
    const answers = isValid ? Array.from({ length: 20 }, () => answerTo(parsed.name)) : [];
    const code = isValid ? ResponseCode.NoError : ResponseCode.FormatError;
    const response = encodeResponse(parsed, { code, isRecursive: true, answers, additional: answers });
    if (response.length > MAX_RESPONSE_BYTES || response.length < 12)
      throw new Error(`a response of ${response.length} bytes`);
    if (isValid && Buffer.from(response).indexOf(parsed.question) !== 12) throw new Error('no question');
    if (input.length >= 2 && (response[0] !== input[0] || response[1] !== input[1])) throw new Error('another ID');
    // Two servers would answer each other forever.
    if (parseQuery(response).mistake !== QueryMistake.Response) throw new Error('the response would be answered');
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return isValid;
  } catch (error) {
    throw new Finding(
      `${error instanceof Error ? error.stack : String(error)}\n\nThe query:\n${input.toString('hex', 0, 2000)}`,
    );
  }
}

function answerTo(name: string) {
  return { name, type: RecordType.A as const, ttlSeconds: 60, data: new Uint8Array(4) };
}

/** Returns whether the table is valid. A valid one must be usable. */
function tryTable(text: Buffer): boolean {
  let config: ReturnType<typeof readTable>;
  try {
    config = readTable(text);
  } catch {
    return false;
  }
  try {
    new DomainTable(config, false).find('a.b.c');
    return true;
  } catch (error) {
    throw new Finding(
      `${error instanceof Error ? error.stack : String(error)}\n\nThe table:\n${text.toString('latin1')}`,
    );
  }
}

function query(name: string, type: number): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]);
  return Buffer.concat([Buffer.from('000701000001000000000000', 'hex'), ...labels, Buffer.from([0, 0, type, 0, 1])]);
}

const TOKENS: readonly Buffer[] = [
  '\0',
  '\xc0\x0c',
  '\x3f',
  '\x40',
  '\xff',
  '*',
  '.',
  '_',
  '[]',
  '{}',
  'null',
  '-1',
  '1e9',
  '&a',
  '*a',
  '<<',
].map((text) => Buffer.from(text, 'latin1'));
