// The endpoints by path: a flat table with exact matches only.

import type { AdminHandler } from './admin-handler.js';

export class HandlerTable {
  /** Includes aliases. */
  readonly #byPath = new Map<string, AdminHandler>();
  readonly #handlers = new Set<AdminHandler>();
  #sorted: readonly AdminHandler[] | undefined;

  constructor(handlers: Iterable<AdminHandler>) {
    for (const handler of handlers) this.add(handler);
  }

  /**
   * Adds an endpoint. Throws an Error, without adding anything, if a path or an alias is taken or cannot be used in links
   * and forms.
   */
  add(handler: AdminHandler): void {
    for (const path of pathsOf(handler)) {
      if (!/^\/[^&"'<>?:]*$/.test(path)) throw new Error(`'${path}' cannot be the path of an admin endpoint`);
      if (this.#byPath.has(path)) throw new Error(`the admin interface has an endpoint ${path} already`);
    }
    for (const path of pathsOf(handler)) this.#byPath.set(path, handler);
    this.#handlers.add(handler);
    this.#sorted = undefined;
  }

  /** Removes an endpoint; requests in progress continue. No-op if it is not in the table. */
  remove(handler: AdminHandler): void {
    if (!this.#handlers.delete(handler)) return;
    for (const path of pathsOf(handler)) this.#byPath.delete(path);
    this.#sorted = undefined;
  }

  find(path: string): AdminHandler | undefined {
    return this.#byPath.get(path);
  }

  /** All listed endpoints, without aliases, in byte order of path. */
  get sorted(): readonly AdminHandler[] {
    this.#sorted ??= [...this.#handlers]
      .filter((handler) => handler.isUnlisted !== true)
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    return this.#sorted;
  }
}

function pathsOf({ path, aliases = [] }: AdminHandler): readonly string[] {
  return [path, ...aliases];
}
