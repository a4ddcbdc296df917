// The endpoints by path: one flat table, exact matches only.

import type { AdminHandler } from './admin-handler.js';

export class HandlerTable {
  readonly #byPath = new Map<string, AdminHandler>();
  #sorted: readonly AdminHandler[] | undefined;

  constructor(handlers: Iterable<AdminHandler>) {
    for (const handler of handlers) this.add(handler);
  }

  /** Throws an Error for a path that is taken, or that could not stand in a link or a form. */
  add(handler: AdminHandler): void {
    const { path } = handler;
    if (!/^\/[^&"'<>?:]*$/.test(path)) throw new Error(`'${path}' cannot be the path of an admin endpoint`);
    if (this.#byPath.has(path)) throw new Error(`the admin interface has an endpoint ${path} already`);
    this.#byPath.set(path, handler);
    this.#sorted = undefined;
  }

  find(path: string): AdminHandler | undefined {
    return this.#byPath.get(path);
  }

  /** All of them in byte order of path. */
  get sorted(): readonly AdminHandler[] {
    this.#sorted ??= [...this.#byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
    return this.#sorted;
  }
}
