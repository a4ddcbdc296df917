// What is known of one kind of resources on a stream: what watchers have made of what came. A server says nothing twice, so
// subscriptions that come later are told from here, and the server of the next stream is told which versions are in use.

import type { Resource, ResourceType } from '../resource.js';

/** Each name is in use, refused, both (an older version is in use), or not known. */
export class KnownResources {
  /** What is known is everything that the server has. */
  isAll = false;
  readonly #haveAliases: boolean;
  readonly #inUse = new Map<string, Resource>();
  /** What came last, if it was refused: with the resource if a watcher rejects it, who may come to use it. */
  readonly #refused = new Map<string, Resource | undefined>();

  constructor(type: ResourceType) {
    this.#haveAliases = type === 'virtual-host';
  }

  /** In use from now on. */
  accept(resource: Resource): void {
    this.#refused.delete(resource.name);
    this.#inUse.set(resource.name, resource);
  }

  /** A watcher rejects it, which is right by itself. What was in use stays. */
  reject(resource: Resource): void {
    this.#refused.set(resource.name, resource);
  }

  /** It cannot be read, or is wrong by itself. What was in use stays. */
  refuse(name: string): void {
    this.#refused.set(name, undefined);
  }

  forget(names: Iterable<string>): void {
    for (const name of names) {
      this.#inUse.delete(name);
      this.#refused.delete(name);
    }
  }

  isInUse(name: string): boolean {
    return this.#inUse.has(name);
  }

  /** The last one that could be read. */
  last(name: string): Resource | undefined {
    return this.#refused.get(name) ?? this.#inUse.get(name);
  }

  /** In use or refused. */
  get names(): Iterable<string> {
    return new Set([...this.#inUse.keys(), ...this.#refused.keys()]);
  }

  get inUse(): Iterable<Resource> {
    return this.#inUse.values();
  }

  /** Those in use that have one of these names. */
  named(names: ReadonlySet<string>): Resource[] {
    if (!this.#haveAliases) return [...names].flatMap((name) => this.#inUse.get(name) ?? []);
    return [...this.inUse].filter(({ name, aliases }) => [name, ...aliases].some((each) => names.has(each)));
  }

  /** What was refused and is in no version in use: a server that is told the versions does not learn of it. */
  *unused(): Iterable<string> {
    for (const name of this.#refused.keys()) if (!this.#inUse.has(name)) yield name;
  }
}
