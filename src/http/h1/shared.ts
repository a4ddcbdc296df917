// What the HTTP/1 codecs of one thread share: header blocks, a spare head reader, and the lines that are always the same.

import type { Memory } from '../../io/memory.js';
import { type HeaderBlockPool, headerBlocks } from '../headers/header-block.js';
import { HeadReader } from './head/head-reader.js';
import { KnownFields } from './head/known-fields.js';
import { Lines } from './lines.js';

export class H1Shared {
  readonly memory: Memory;
  readonly blocks: HeaderBlockPool;
  readonly lines: Lines;
  readonly known: KnownFields;
  /** Reads heads that come in one piece; a codec whose head does not, keeps it and leaves another one here. */
  reader: HeadReader;

  constructor(memory: Memory) {
    this.memory = memory;
    this.blocks = headerBlocks(memory);
    this.lines = new Lines(memory);
    this.known = new KnownFields(memory);
    this.reader = new HeadReader(memory, this.known);
  }
}

/** The one set of a memory. */
export function h1Shared(memory: Memory): H1Shared {
  if (last !== undefined && last.memory === memory) return last;
  last = all.get(memory);
  if (last === undefined) {
    last = new H1Shared(memory);
    all.set(memory, last);
  }
  return last;
}

const all = new WeakMap<Memory, H1Shared>();
let last: H1Shared | undefined;
