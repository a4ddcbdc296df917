// The fields of a head or of trailers, as a module uses them.

import type { Headers } from '../../../../api/index.js';
import { keyOf, writableKey } from '../../../script/header-keys.js';
import { textOfHead } from '../../../script/text.js';
import { byteText, type HeaderBlock, type HeaderKey } from '../../../sdk.js';

export class ScriptHeaders implements Headers {
  #block: HeaderBlock | undefined;
  #why = '';

  constructor(block: HeaderBlock) {
    this.#block = block;
  }

  /** The block belongs to others from now on. `why`: for code that uses it nevertheless. */
  close(why: string): void {
    if (this.#block === undefined) return;
    this.#block = undefined;
    this.#why = why;
  }

  /** Undefined once it was closed. */
  get openBlock(): HeaderBlock | undefined {
    return this.#block;
  }

  get block(): HeaderBlock {
    if (this.#block === undefined) throw new Error(this.#why);
    return this.#block;
  }

  get(name: string): string | undefined {
    const value = this.block.get(keyOf(name));
    return value === undefined ? undefined : textOfHead(value);
  }

  getAll(name: string): string[] {
    const { block } = this;
    const key = keyOf(name);
    const values: string[] = [];
    for (let index = block.find(key); index >= 0; index = block.findNext(key, index)) {
      values.push(textOfHead(block.value(index)));
    }
    return values;
  }

  has(name: string): boolean {
    return this.block.find(keyOf(name)) >= 0;
  }

  set(name: string, value: string): void {
    this.block.set(writableKey(name), byteText(value));
  }

  append(name: string, value: string): void {
    this.block.add(writableKey(name), byteText(value));
  }

  delete(name: string): boolean {
    return this.block.remove(keyOf(name));
  }

  *[Symbol.iterator](): IterableIterator<[string, string]> {
    for (let index = 0; index < this.block.size; index++) {
      if (!this.block.isRemoved(index)) yield [this.block.name(index), textOfHead(this.block.value(index))];
    }
  }

  /** Sets a field that modules cannot set. */
  setOwn(key: HeaderKey, value: string): void {
    this.block.set(key, value);
  }
}
