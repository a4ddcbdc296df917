// Blocks of shared words for listeners. Versions with the same name share a block, and count their connections together.

import type { SharedWordsOwner } from '../../../upstream/shared-words.js';

export class ListenerBlocks {
  readonly #words: SharedWordsOwner;
  readonly #blocks = new Map<string, { readonly block: number; holders: number }>();

  constructor(words: SharedWordsOwner) {
    this.#words = words;
  }

  /** Returns the block for another version of the listener `name`. */
  hold(name: string): number {
    let known = this.#blocks.get(name);
    if (known === undefined) {
      known = { block: this.#words.allocateListener(), holders: 0 };
      this.#blocks.set(name, known);
    }
    known.holders++;
    return known.block;
  }

  /** Called when a version is gone from all workers. */
  free(name: string): void {
    const known = this.#blocks.get(name)!;
    if (--known.holders > 0) return;
    this.#blocks.delete(name);
    this.#words.retireListener(known.block, 0);
  }
}
