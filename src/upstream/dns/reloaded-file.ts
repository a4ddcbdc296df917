// A small system file that is re-read when it has changed, as the C library does.

import { readFileSync, statSync } from 'node:fs';

export class ReloadedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #stamp = MISSING;
  #value: T;

  /** `parse` must not throw. A missing file counts as empty. */
  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
    this.#value = parse('');
  }

  /** Returns the parsed current contents. Checks for changes by one stat() of some microseconds. */
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
      // Descriptors may be exhausted: keeps the last contents, and the next call retries.
      return undefined;
    }
  }
}

/** The stamp of a missing file. */
const MISSING = '';
