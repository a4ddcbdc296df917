// Mutations of bytes, as a broken or hostile peer would send them, and of configurations, as people mistype them.

import type { Random } from '../../src/common/random.js';

/** Returns a random item of the list. */
export function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)]!;
}

/** Returns one of the seeds with a few changes. */
export function mutateBytes(random: Random, seeds: readonly Buffer[], tokens: readonly Buffer[]): Buffer {
  let bytes = Buffer.from(pick(random, seeds));
  for (let left = random.below(5); left > 0; left--) bytes = changeBytes(random, bytes, seeds, tokens);
  return bytes;
}

function changeBytes(
  random: Random,
  bytes: Buffer,
  seeds: readonly Buffer[],
  tokens: readonly Buffer[],
): Buffer<ArrayBuffer> {
  const at = random.below(bytes.length + 1);
  const to = Math.min(bytes.length, at + 1 + random.below(random.below(8) === 0 ? 200 : 8));
  const before = bytes.subarray(0, at);
  const behind = bytes.subarray(to);
  switch (random.below(8)) {
    case 0: {
      const changed = Buffer.from(bytes);
      if (at < changed.length) changed[at]! ^= 1 << random.below(8);
      return changed;
    }
    case 1:
      return Buffer.concat([before, behind]);
    case 2:
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([before, Buffer.from([random.below(256)]), bytes.subarray(at)]);
    case 4: {
      const other = pick(random, seeds);
      return Buffer.concat([before, other.subarray(random.below(other.length))]);
    }
    case 5:
      return Buffer.concat([
        before,
        Buffer.alloc(random.below(random.below(20) === 0 ? 100_000 : 300), bytes[at] ?? 65),
      ]);
    case 6:
      return Buffer.concat([bytes, pick(random, seeds)]);
    default:
      return Buffer.concat([before, pick(random, tokens), random.below(2) === 0 ? behind : bytes.subarray(at)]);
  }
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Returns a copy with a few changes. */
export function mutateConfiguration(random: Random, seed: unknown): unknown {
  const copy = structuredClone(seed) as Json;
  for (let left = 1 + random.below(3); left > 0; left--) changeValue(random, copy);
  return copy;
}

/** Values that are often overlooked. None of them names a file outside the working directory, or a machine. */
const ODD_VALUES: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  1.5,
  65536,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  1e308,
  '',
  ' ',
  'x',
  '0',
  '-1',
  '1s',
  '0s',
  '0.000000001s',
  '-1s',
  '315576000000s',
  'NaN',
  'Infinity',
  '*',
  '[',
  '(?=x)',
  '%',
  '%REQ(%',
  '%START_TIME(%E9f)%',
  '\u0000',
  '\r\n',
  '\ud800',
  'ä'.repeat(300),
  'a'.repeat(70_000),
  '127.0.0.1',
  '::1',
  'localhost',
  '256.0.0.1',
  '__proto__',
  [],
  [null],
  [[]],
  {},
  { '@type': '' },
  { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  { '': {} },
];

/** Changes one random value, or removes, duplicates or renames it. */
function changeValue(random: Random, root: Json): void {
  const places: { holder: Json[] | { [key: string]: Json }; key: string }[] = [];
  collect(root, places);
  if (places.length === 0) return;
  const { holder, key } = pick(random, places);
  const other = pick(random, places);
  const isList = Array.isArray(holder);
  const record = holder as { [key: string]: Json };
  switch (random.below(6)) {
    case 0:
      if (isList) holder.splice(Number(key), 1);
      else delete record[key];
      break;
    case 1:
      if (isList) holder.push(structuredClone(record[key]!));
      else record[`${key}${pick(random, ['', 's', '_', 'x'])}`] = record[key]!;
      break;
    case 2:
      // A value from elsewhere in the same configuration is the most likely error.
      record[key] = structuredClone((other.holder as { [key: string]: Json })[other.key]!);
      break;
    case 3:
      if (!isList) {
        record[other.key] = record[key]!;
        delete record[key];
      }
      break;
    default:
      record[key] = structuredClone(pick(random, ODD_VALUES));
  }
}

function collect(value: Json, places: { holder: Json[] | { [key: string]: Json }; key: string }[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    places.push({ holder: value, key });
    collect((value as { [key: string]: Json })[key]!, places);
  }
}
