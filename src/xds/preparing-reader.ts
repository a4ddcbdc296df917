// A reader that has resources prepared before it returns them, in the order in which they were read.

import type { Resource, ResourceType } from './resource.js';
import type { EncodedResource, ReadFile, ReadResources, ResourceReader } from './resource-reader.js';

export class PreparingReader implements ResourceReader {
  readonly #inner: ResourceReader;
  readonly #prepare: (type: ResourceType, resources: readonly Resource[]) => Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(inner: ResourceReader, prepare: (type: ResourceType, resources: readonly Resource[]) => Promise<void>) {
    this.#inner = inner;
    this.#prepare = prepare;
  }

  read(type: ResourceType, version: string, encoded: readonly EncodedResource[]): Promise<ReadResources> {
    return this.#then(type, this.#inner.read(type, version, encoded));
  }

  readFile(type: ResourceType, path: string): Promise<ReadFile> {
    return this.#then(type, this.#inner.readFile(type, path));
  }

  readText(type: ResourceType, json: Uint8Array, name: string): Promise<ReadFile> {
    return this.#then(type, this.#inner.readText(type, json, name));
  }

  close(): void {
    this.#inner.close();
  }

  /** Two threads read and prepare: an update must not overtake an earlier one. */
  #then<R extends ReadResources>(type: ResourceType, reading: Promise<R>): Promise<R> {
    const before = this.#last;
    const done = this.#finish(type, reading, before);
    this.#last = done.catch(() => {});
    return done;
  }

  async #finish<R extends ReadResources>(
    type: ResourceType,
    reading: Promise<R>,
    before: Promise<unknown>,
  ): Promise<R> {
    const [read] = await Promise.all([reading, before]);
    await this.#prepare(type, read.resources);
    return read;
  }
}
