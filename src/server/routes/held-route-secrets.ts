// The secrets of one route configuration, or of several with one owner. Workers receive them before the routes that use them, and lose
// them after these routes.

import type { RouteConfiguration } from '../../config/generated/api.js';
import type { PrimaryFilterContext, PrimaryPart } from '../../extensions/factories.js';
import type { RoutesContext } from './routes-context.js';

export class HeldRouteSecrets {
  readonly #context: Pick<RoutesContext, 'secrets' | 'whenApplied'>;
  /** The last one is that of the latest configurations. */
  readonly #held: PrimaryPart[] = [];
  /** Those of routes that are checked, and may not be used. */
  #prepared: PrimaryPart | undefined;

  constructor(context: Pick<RoutesContext, 'secrets' | 'whenApplied'>) {
    this.#context = context;
  }

  /** Call before these routes are published, perhaps in place of earlier ones. See PrimarySecrets.use(). */
  add(configs: Iterable<RouteConfiguration>, waitFor?: PrimaryFilterContext['waitFor']): void {
    this.#held.push(this.#context.secrets.use(configs, waitFor));
  }

  /** Like add(), for routes that may not be published. Call the returned function if they are; otherwise the next prepare() removes them. */
  prepare(configs: Iterable<RouteConfiguration>): () => void {
    this.#prepared?.close();
    const prepared = this.#context.secrets.use(configs);
    this.#prepared = prepared;
    return () => {
      if (this.#prepared !== prepared) return;
      this.#prepared = undefined;
      this.#held.push(prepared);
    };
  }

  /** Call when the latest routes are published: requests use earlier ones until all workers have them. */
  keepLatest(): void {
    if (this.#held.length < 2) return;
    const former = this.#held.splice(0, this.#held.length - 1);
    this.#context.whenApplied(() => {
      for (const part of former) part.close();
    });
  }

  /** Call when no worker needs the routes any more. */
  close(): void {
    this.#prepared?.close();
    this.#prepared = undefined;
    for (const part of this.#held.splice(0)) part.close();
  }
}
