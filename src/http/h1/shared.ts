// What the HTTP/1 codecs of one thread share: header blocks, a head reader, and constant lines.

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
  /** Reads heads that arrive in one piece. A codec with an incomplete head keeps this reader and replaces it here. */
  reader: HeadReader;

  constructor(memory: Memory) {
    this.memory = memory;
    this.blocks = headerBlocks(memory);
    this.lines = new Lines(memory);
    this.known = new KnownFields(memory);
    this.reader = new HeadReader(memory, this.known);
  }
}

/** Returns the H1Shared of a memory; there is one for each. */
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
