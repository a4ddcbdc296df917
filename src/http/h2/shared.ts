// The memory, header blocks, builder and random numbers that the HTTP/2 codecs of one thread share.

import { Random } from '../../common/random.js';
import type { Memory } from '../../io/memory.js';
import { type HeaderBlockPool, headerBlocks } from '../headers/header-block.js';
import { HeadBuilder } from './head-builder.js';

export class H2Shared {
  readonly memory: Memory;
  readonly blocks: HeaderBlockPool;
  readonly builder: HeadBuilder;
  /** For the jitter of pings. */
  readonly random = new Random();

  constructor(memory: Memory) {
    this.memory = memory;
    this.blocks = headerBlocks(memory);
    this.builder = new HeadBuilder(memory);
  }
}

/** Returns the only H2Shared of a memory, and creates it when it is first requested. */
export function h2Shared(memory: Memory): H2Shared {
  let shared = all.get(memory);
  if (shared === undefined) {
    shared = new H2Shared(memory);
    all.set(memory, shared);
  }
  return shared;
}

const all = new WeakMap<Memory, H2Shared>();
