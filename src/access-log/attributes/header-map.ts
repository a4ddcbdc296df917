// request.headers and its relatives: the fields of a head as a map of expressions. Names are in lower case and looked up in any case;
// several fields of a name are one value, joined by commas. Pseudo-headers are as in HTTP/2 for every version.

import { CelMap, type CelValue } from '../../cel/values.js';
import { type HeaderKey, headerKey, isFieldName } from '../../common/text/header-names.js';
import type { HeaderView } from '../stream/header-view.js';

export class HeaderMap extends CelMap {
  readonly #head: HeaderView | undefined;
  readonly #scheme: string;

  /** `head`: undefined for an empty one; `scheme`: that of a request. */
  constructor(head: HeaderView | undefined, scheme: string) {
    super();
    this.#head = head;
    this.#scheme = scheme;
  }

  get size(): number {
    return this.entries().length;
  }

  get(key: CelValue): string | undefined {
    if (typeof key !== 'string' || this.#head === undefined) return undefined;
    return readerOf(key)(this.#head, this.#scheme);
  }

  has(key: CelValue): boolean {
    return this.get(key) !== undefined;
  }

  entries(): [string, string][] {
    const head = this.#head;
    if (head === undefined) return [];
    const names = new Set([':authority', ':method', ':path', ':scheme', ':status']);
    for (let index = 0; index < head.size; index++) {
      if (head.isRemoved(index)) continue;
      const name = head.name(index);
      if (name !== 'host') names.add(name);
    }
    return [...names].sort().flatMap((name): [string, string][] => {
      const value = readerOf(name)(head, this.#scheme);
      return value === undefined ? [] : [[name, value]];
    });
  }
}

export type HeaderReader = (head: HeaderView, scheme: string) => string | undefined;

const PSEUDO_HEADERS: ReadonlyMap<string, HeaderReader> = new Map<string, HeaderReader>([
  [':path', ({ memory, pathEnd, pathStart }) => nonEmpty(memory.text(pathStart, pathEnd))],
  [':method', ({ memory, methodEnd, methodStart }) => nonEmpty(memory.text(methodStart, methodEnd))],
  [':scheme', (_head, scheme) => nonEmpty(scheme)],
  [':status', ({ status }) => (status > 0 ? String(status) : undefined)],
  [':authority', (head) => joinedFields(head, HOST)],
]);
const HOST = headerKey('host');

/** Returns the reader of a name in any case; it finds nothing for an invalid name. */
export function headerReader(name: string): HeaderReader {
  const lower = name.toLowerCase();
  const pseudo = PSEUDO_HEADERS.get(lower);
  if (pseudo !== undefined) return pseudo;
  if (!isFieldName(lower)) return absent;
  const key = headerKey(lower);
  return (head) => joinedFields(head, key);
}

function absent(): undefined {}

/** Names that expressions compute may come from clients: few readers are kept. */
const readers = new Map<string, HeaderReader>();
const MAX_READERS = 256;
const MAX_NAME = 256;

function readerOf(name: string): HeaderReader {
  const known = readers.get(name);
  if (known !== undefined) return known;
  const reader = headerReader(name);
  if (name.length > MAX_NAME) return reader;
  if (readers.size >= MAX_READERS) readers.clear();
  readers.set(name, reader);
  return reader;
}

function joinedFields(head: HeaderView, key: HeaderKey): string | undefined {
  let text: string | undefined;
  for (let index = head.find(key); index >= 0; index = head.findNext(key, index)) {
    const value = head.memory.text(head.valueStart(index), head.valueEnd(index));
    text = text === undefined ? value : `${text},${value}`;
  }
  return text;
}

function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text;
}
