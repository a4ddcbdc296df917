// The resources of one type that are known on a stream, in use or refused. A server does not repeat resources, so later
// subscriptions get them from here, and a new stream begins with the versions in use.

import { collectionOf, formatXdstp, isGlob, isXdstp, parseXdstp } from '../../config/fields/xdstp-name.js';
import type { Resource, ResourceType } from '../resource.js';

/** Each name is in use, refused, both (an older version is in use), or unknown. */
export class KnownResources {
  /** All resources that the server has are known. */
  isAll = false;
  readonly #haveAliases: boolean;
  readonly #inUse = new Map<string, Resource>();
  /**
   * The latest version, if it was refused: the resource if a watcher rejected it and may use it later; undefined if it was
   * invalid.
   */
  readonly #refused = new Map<string, Resource | undefined>();

  constructor(type: ResourceType) {
    this.#haveAliases = type === 'virtual-host';
  }

  /** Records a resource that is in use. */
  accept(resource: Resource): void {
    this.#refused.delete(resource.name);
    this.#inUse.set(resource.name, resource);
  }

  /** Records a valid resource that a watcher rejects. The version in use stays. */
  reject(resource: Resource): void {
    this.#refused.set(resource.name, resource);
  }

  /** Records an unreadable or invalid resource. The version in use stays. */
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

  /** Returns the last valid version. */
  last(name: string): Resource | undefined {
    return this.#refused.get(name) ?? this.#inUse.get(name);
  }

  /** Names of resources that are in use or refused. */
  get names(): Iterable<string> {
    return new Set([...this.#inUse.keys(), ...this.#refused.keys()]);
  }

  get inUse(): Iterable<Resource> {
    return this.#inUse.values();
  }

  /** Returns the resources in use that have one of these names, or are in a collection of that name. */
  named(names: ReadonlySet<string>): Resource[] {
    if (!this.#haveAliases) return [...names].flatMap((name) => this.#inUse.get(name) ?? this.#ofXdstp(name));
    return [...this.inUse].filter(({ name, aliases }) => [name, ...aliases].some((each) => names.has(each)));
  }

  #ofXdstp(name: string): Resource[] {
    const parsed = isXdstp(name) ? parseXdstp(name) : undefined;
    if (parsed === undefined) return [];
    const canonical = formatXdstp(parsed);
    // Other names must not cost a search: there are as many of them as there are resources.
    if (isGlob(parsed)) return [...this.inUse].filter((each) => collectionOf(each.name) === canonical);
    const resource = this.#inUse.get(canonical);
    return resource === undefined ? [] : [resource];
  }

  /** Yields refused names without a version in use: the versions that are sent to a server do not include them. */
  *unused(): Iterable<string> {
    for (const name of this.#refused.keys()) if (!this.#inUse.has(name)) yield name;
  }
}
