// A small file of the system that is read again when it has changed, as the C library does it.

import { readFileSync, statSync } from 'node:fs';

export class ReloadedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #stamp = MISSING;
  #value: T;

  /** `parse` must not throw; a file that is missing counts as empty. */
  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
    this.#value = parse('');
  }

  /** What the file says now. Looking whether it has changed is one stat() of some microseconds. */
  get(): T {
    const stamp = this.#stampNow();
    const text = stamp === this.#stamp ? undefined : stamp === MISSING ? '' : this.#read();
    if (text !== undefined) {
      this.#stamp = stamp;
      this.#value = this.#parse(text);
    }
    return this.#value;
  }

  #stampNow(): string {
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(this.#path, { bigint: true });
      return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    } catch {
      return MISSING;
    }
  }

  #read(): string | undefined {
    try {
      return readFileSync(this.#path, 'utf8');
    } catch {
      // For want of a descriptor, perhaps: it stays what it was, and the next look tries again.
      return undefined;
    }
  }
}

/** The stamp of no file. */
const MISSING = '';
