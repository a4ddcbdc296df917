// The secrets of one route configuration, or of several with one owner. Workers receive them before the routes that use them, and lose
// them after these routes.

import type { RouteConfiguration } from '../../config/generated/api.js';
import type { PrimaryFilterContext, PrimaryPart } from '../../extensions/factories.js';
import type { RoutesContext } from './routes-context.js';

export class HeldRouteSecrets {
  readonly #context: Pick<RoutesContext, 'secrets' | 'whenApplied'>;
  /** The last one is that of the latest configurations. */
  readonly #held: PrimaryPart[] = [];

  constructor(context: Pick<RoutesContext, 'secrets' | 'whenApplied'>) {
    this.#context = context;
  }

  /** Call before these routes are published, perhaps in place of earlier ones. See PrimarySecrets.use(). */
  add(configs: Iterable<RouteConfiguration>, waitFor?: PrimaryFilterContext['waitFor']): void {
    this.#held.push(this.#context.secrets.use(configs, waitFor));
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
    for (const part of this.#held.splice(0)) part.close();
  }
}
