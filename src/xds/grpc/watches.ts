// What is wanted of one kind of resources on a stream: its watches, by name and by wildcard, as of the last turn in which they
// were indexed.

import type { Resource } from '../resource.js';
import { type ResourceNames, wantsAll } from '../subscription.js';
import type { News, Wanted } from './protocols/protocol.js';
import type { Watch } from './watch.js';

export class Watches {
  readonly #all = new Set<Watch>();
  #wildcards: Watch[] = [];
  #byName = new Map<string, Watch[]>();
  #isStale = false;

  add(watch: Watch): void {
    this.#all.add(watch);
    this.#isStale = true;
  }

  /** False when it is gone already. */
  setNames(watch: Watch, names: ResourceNames): boolean {
    if (!this.#all.has(watch)) return false;
    watch.setNames(names);
    this.#isStale = true;
    return true;
  }

  /** False when it was gone already. */
  remove(watch: Watch): boolean {
    if (!this.#all.delete(watch)) return false;
    watch.close();
    this.#isStale = true;
    return true;
  }

  close(): void {
    for (const watch of this.#all) watch.close();
    this.#all.clear();
  }

  has(watch: Watch): boolean {
    return this.#all.has(watch);
  }

  [Symbol.iterator](): Iterator<Watch> {
    return this.#all.values();
  }

  /** Sorts them by what they want now. False when that was done since the last change. */
  index(): boolean {
    if (!this.#isStale) return false;
    this.#isStale = false;
    this.#wildcards = [];
    this.#byName = new Map();
    for (const watch of this.#all) {
      if (wantsAll(watch.names)) this.#wildcards.push(watch);
      if (watch.names === '*') continue;
      for (const name of watch.names) if (name !== '*') this.#note(name, watch);
    }
    return true;
  }

  /** All of them together. */
  get wanted(): Wanted {
    return { names: new Set(this.#byName.keys()), isWildcard: this.#wildcards.length > 0 };
  }

  /** Whether somebody wants it by one of its names. */
  wantByName({ name, aliases }: Pick<Resource, 'name' | 'aliases'>): boolean {
    return this.#byName.has(name) || aliases.some((alias) => this.#byName.has(alias));
  }

  /**
   * What each is to be told of `news`: wildcards all of it, though it be nothing; the others what they have named. What has no
   * name that could be read concerns everybody. For whom the news are complete is told even when it has no part in them.
   */
  partsOf(news: News, isComplete: (watch: Watch) => boolean): Map<Watch, News> {
    const parts = new Map<Watch, { [part in keyof News]: News[part][number][] }>();
    const partOf = (watch: Watch) => {
      let part = parts.get(watch);
      if (part === undefined) parts.set(watch, (part = { resources: [], refused: [], removed: [] }));
      return part;
    };
    for (const watch of this.#all) if (isComplete(watch)) partOf(watch);
    for (const resource of news.resources) {
      const watches = new Set([resource.name, ...resource.aliases].flatMap((name) => this.#named(name)));
      for (const watch of watches) partOf(watch).resources.push(resource);
    }
    for (const refused of news.refused) {
      const watches = refused.name === '' ? this.#all : this.#named(refused.name);
      for (const watch of watches) if (!wantsAll(watch.names)) partOf(watch).refused.push(refused);
    }
    for (const name of news.removed) for (const watch of this.#named(name)) partOf(watch).removed.push(name);
    return new Map<Watch, News>([...parts, ...this.#wildcards.map((watch) => [watch, news] as const)]);
  }

  #named(name: string): readonly Watch[] {
    return this.#byName.get(name) ?? NOBODY;
  }

  #note(name: string, watch: Watch): void {
    const watches = this.#byName.get(name);
    if (watches === undefined) this.#byName.set(name, [watch]);
    else watches.push(watch);
  }
}

const NOBODY: readonly Watch[] = [];
