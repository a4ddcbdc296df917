// Functions of strings that enable_string_functions makes available. Positions count characters.

import { byteText } from '../../common/text/byte-text.js';
import { type CelValue, textOf } from '../values.js';
import { type CelFunction, MAX_MADE, type Result } from './function-table.js';

/** Strings that split() makes. */
const MAX_PARTS = 100_000;

export const STRING_FUNCTIONS: readonly (readonly [string, CelFunction])[] = [
  method('lowerAscii', 1, 1, (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())),
  method('upperAscii', 1, 1, (text) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase())),
  method('trim', 1, 1, (text) => byteText(textOf(text).trim())),
  method('reverse', 1, 1, (text) => byteText([...textOf(text)].reverse().join(''))),
  method('charAt', 2, 2, charAt),
  method('indexOf', 2, 3, indexOf),
  method('lastIndexOf', 2, 3, lastIndexOf),
  method('substring', 2, 3, substring),
  method('replace', 3, 4, replace),
  method('split', 2, 3, split),
  ['join', { least: 1, most: 2, style: 'method', apply: join }],
];

type Arguments = readonly (CelValue | undefined)[];

function method(
  name: string,
  least: number,
  most: number,
  apply: (text: string, ...args: Arguments) => Result,
): readonly [string, CelFunction] {
  return [
    name,
    {
      least,
      most,
      style: 'method',
      apply: (text, ...args: Arguments) => (typeof text === 'string' ? apply(text, ...args) : undefined),
    },
  ];
}

/** Returns an int as a number; undefined for other types. */
function position(value: CelValue | undefined): number | undefined {
  return typeof value === 'bigint' ? Number(value) : undefined;
}

function charAt(text: string, index: CelValue | undefined): Result {
  const at = position(index);
  const characters = [...textOf(text)];
  if (at === undefined || at < 0 || at > characters.length) return undefined;
  return byteText(characters[at] ?? '');
}

/** Returns where `part` begins; -1: nowhere. */
function indexOf(text: string, part: CelValue | undefined, from: CelValue | undefined): Result {
  const start = from === undefined ? 0 : position(from);
  if (typeof part !== 'string' || start === undefined || start < 0) return undefined;
  const characters = [...textOf(text)];
  if (start > characters.length) return part === '' ? undefined : -1n;
  const before = characters.slice(0, start).join('').length;
  const found = characters.join('').indexOf(textOf(part), before);
  return found < 0 ? -1n : BigInt([...characters.join('').slice(0, found)].length);
}

function lastIndexOf(text: string, part: CelValue | undefined, from: CelValue | undefined): Result {
  const characters = [...textOf(text)];
  const start = from === undefined ? characters.length : position(from);
  if (typeof part !== 'string' || start === undefined || start < 0) return undefined;
  const all = characters.join('');
  const found = all.lastIndexOf(textOf(part), characters.slice(0, start).join('').length);
  return found < 0 ? -1n : BigInt([...all.slice(0, found)].length);
}

function substring(text: string, from: CelValue | undefined, to: CelValue | undefined): Result {
  const characters = [...textOf(text)];
  const start = position(from);
  const end = to === undefined ? characters.length : position(to);
  if (start === undefined || end === undefined || start < 0 || end < start || end > characters.length) return undefined;
  return byteText(characters.slice(start, end).join(''));
}

function replace(
  text: string,
  part: CelValue | undefined,
  by: CelValue | undefined,
  limit: CelValue | undefined,
): Result {
  if (typeof part !== 'string' || typeof by !== 'string') return undefined;
  const most = limit === undefined ? -1 : position(limit);
  if (most === undefined) return undefined;
  const pieces = piecesOf(text, part);
  const replaced = most < 0 ? pieces.length - 1 : Math.min(most, pieces.length - 1);
  if (text.length + replaced * by.length > MAX_MADE) return undefined;
  return (
    pieces.slice(0, replaced + 1).join(by) +
    pieces
      .slice(replaced + 1)
      .map((piece) => part + piece)
      .join('')
  );
}

/** Returns the texts between the places of `part`. An empty one is before each character and at the end. */
function piecesOf(text: string, part: string): string[] {
  if (part !== '') return text.split(part);
  const characters = [...textOf(text)].map(byteText);
  return characters.length === 0 ? ['', ''] : ['', ...characters, ''];
}

function split(text: string, separator: CelValue | undefined, limit: CelValue | undefined): Result {
  const most = limit === undefined ? -1 : position(limit);
  if (typeof separator !== 'string' || most === undefined) return undefined;
  if (most === 0) return [];
  const parts = separator === '' ? [...textOf(text)].map(byteText) : text.split(separator);
  if (parts.length > MAX_PARTS) return undefined;
  return most < 0 || parts.length <= most
    ? parts
    : [...parts.slice(0, most - 1), parts.slice(most - 1).join(separator)];
}

function join(list: CelValue, separator: CelValue | undefined): Result {
  if (!Array.isArray(list) || !(separator === undefined || typeof separator === 'string')) return undefined;
  let length = 0;
  for (const each of list as readonly CelValue[]) {
    if (typeof each !== 'string') return undefined;
    length += each.length + (separator?.length ?? 0);
  }
  return length > MAX_MADE ? undefined : list.join(separator ?? '');
}
