// Mutated databases in the MaxMind DB file format. They run in this process.

import type { Random } from '../../src/common/random.js';
import { Mmdb, MmdbError } from '../../src/extensions/filters/http/geoip/mmdb.js';
import { control, writeMmdb } from '../../test/extensions/filters/http/geoip/write-mmdb.js';
import { mutateBytes, pick } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 1000;

const RECORD = {
  city: { names: { en: 'Cologne' } },
  subdivisions: [{ iso_code: 'NW' }],
  country: { iso_code: 'DE' },
  autonomous_system_number: 64_500,
  is_anonymous: true,
};
const FILES = [
  writeMmdb({ '10.0.0.0/8': RECORD, '2001:db8::/32': RECORD }),
  writeMmdb({ '0.0.0.0/1': 'text', '128.0.0.0/2': [RECORD, RECORD] }),
];
const TOKENS = [
  ...[Buffer.of(0x20, 0), Buffer.of(0x38, 255, 255, 255, 255), Buffer.of(0xff, 0xff, 0xff, 0xff)],
  ...[control(7, 60_000), control(11, 60_000), control(2, 60_000), Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')],
];
const ADDRESSES = [
  Uint8Array.of(10, 0, 0, 1),
  Uint8Array.of(200, 1, 2, 3),
  Uint8Array.of(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
];
const PATHS = [
  ['city', 'names', 'en'],
  ['subdivisions', '0', 'iso_code'],
  ['is_anonymous'],
  ['0', 'country', 'iso_code'],
];

/** Throws a Finding when a file causes another exception than an MmdbError, or takes long. Returns a summary. */
export async function fuzzDatabases(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  let valid = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const file = mutateBytes(random, FILES, TOKENS);
      const begin = performance.now();
      try {
        const database = new Mmdb(file);
        const place = database.lookUp(pick(random, ADDRESSES));
        if (place !== undefined) database.values(place, PATHS);
        valid++;
      } catch (error) {
        if (!(error instanceof MmdbError))
          throw new Finding(`${(error as Error).stack}\n\nThe file:\n${file.toString('base64')}`);
      }
      const ms = performance.now() - begin;
      if (ms > MAX_INPUT_MS) throw new Finding(`it took ${Math.round(ms)} ms\n\nThe file:\n${file.toString('base64')}`);
    }
    await new Promise(setImmediate);
  }
  return `${inputs} files (${valid} usable); no defect`;
}
