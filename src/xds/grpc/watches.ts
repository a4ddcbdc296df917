// The watches of one resource type on a stream, indexed by name and wildcard. The index is that of the last index().

import { canonicalXdstp, collectionOf, isXdstp } from '../../config/fields/xdstp-name.js';
import type { Resource } from '../resource.js';
import { includesAll, type ResourceNames } from '../subscription.js';
import type { ResourceChanges, SubscribedNames } from './protocols/protocol.js';
import type { Watch } from './watch.js';

export class Watches {
  readonly #all = new Set<Watch>();
  #wildcards: Watch[] = [];
  #byName = new Map<string, Watch[]>();
  #renewed: ReadonlySet<string> = new Set();
  #isStale = false;

  add(watch: Watch): void {
    this.#all.add(watch);
    this.#isStale = true;
  }

  /** Returns false when it has been removed. */
  setNames(watch: Watch, names: ResourceNames): boolean {
    if (!this.#all.has(watch)) return false;
    watch.setNames(names);
    this.#isStale = true;
    return true;
  }

  /** Returns false when it has been removed already. */
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

  /** Rebuilds the index. Returns false when nothing has changed. */
  index(): boolean {
    if (!this.#isStale) return false;
    this.#isStale = false;
    this.#wildcards = [];
    this.#byName = new Map();
    for (const watch of this.#all) {
      if (includesAll(watch.names)) this.#wildcards.push(watch);
      if (watch.names === '*') continue;
      for (const name of watch.names) if (name !== '*') this.#note(canonicalXdstp(name), watch);
    }
    const renewed = new Set<string>();
    for (const { lapsed } of this.#all) {
      for (const name of lapsed) if (this.#byName.has(canonicalXdstp(name))) renewed.add(canonicalXdstp(name));
      lapsed.clear();
    }
    this.#renewed = renewed;
    return true;
  }

  /** The names that any watch subscribes. */
  get subscribed(): SubscribedNames {
    return {
      names: new Set(this.#byName.keys()),
      isWildcard: this.#wildcards.length > 0,
      renewed: this.#renewed,
    };
  }

  /** Returns whether a watch names it by name or alias. */
  isSubscribedByName({ name, aliases }: Pick<Resource, 'name' | 'aliases'>): boolean {
    return this.#named(name).length > 0 || aliases.some((alias) => this.#byName.has(alias));
  }

  /**
   * Returns each watch's part of `changes`. Wildcard watches get all, even if it is empty; the others get what they name. A
   * refused resource with an unreadable name goes to all. Watches for which the update is complete get a part even if it is
   * empty.
   */
  partsOf(changes: ResourceChanges, isComplete: (watch: Watch) => boolean): Map<Watch, ResourceChanges> {
    const parts = new Map<Watch, { [part in keyof ResourceChanges]: ResourceChanges[part][number][] }>();
    const partOf = (watch: Watch) => {
      let part = parts.get(watch);
      if (part === undefined) parts.set(watch, (part = { resources: [], refused: [], removed: [] }));
      return part;
    };
    for (const watch of this.#all) if (isComplete(watch)) partOf(watch);
    for (const resource of changes.resources) {
      const watches = new Set([resource.name, ...resource.aliases].flatMap((name) => this.#named(name)));
      for (const watch of watches) partOf(watch).resources.push(resource);
    }
    for (const refused of changes.refused) {
      const watches = refused.name === '' ? this.#all : this.#named(refused.name);
      for (const watch of watches) if (!includesAll(watch.names)) partOf(watch).refused.push(refused);
    }
    for (const name of changes.removed) for (const watch of this.#named(name)) partOf(watch).removed.push(name);
    return new Map<Watch, ResourceChanges>([...parts, ...this.#wildcards.map((watch) => [watch, changes] as const)]);
  }

  #named(name: string): readonly Watch[] {
    const watches = this.#byName.get(name);
    return watches === undefined && isXdstp(name) ? this.#ofXdstp(name) : (watches ?? NO_WATCHES);
  }

  /** Returns the watches of a name, or those of the collection that contains it. */
  #ofXdstp(name: string): readonly Watch[] {
    const own = this.#byName.get(canonicalXdstp(name));
    return own ?? this.#byName.get(collectionOf(name) ?? name) ?? NO_WATCHES;
  }

  #note(name: string, watch: Watch): void {
    const watches = this.#byName.get(name);
    if (watches === undefined) this.#byName.set(name, [watch]);
    else watches.push(watch);
  }
}

const NO_WATCHES: readonly Watch[] = [];
