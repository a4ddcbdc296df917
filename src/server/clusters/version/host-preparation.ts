// What the hosts of a long list need is made in steps, between which the primary does other things. Until then the cluster goes on
// with the hosts that it has.

import { nextTurn } from '../../../common/time/next-turn.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { HostDirectory } from '../../../upstream/hosts/host-directory.js';

export class HostPreparation {
  readonly #directory: HostDirectory;
  #latest: AbortController | undefined;
  /** The directory may hold what no list has taken yet. */
  #hasPrepared = false;

  constructor(directory: HostDirectory) {
    this.#directory = directory;
  }

  /** Calls `use` when the list can be used, and `failed` when it cannot, or `use` has thrown. Calls neither after cancel(). */
  begin(endpoints: readonly ResolvedEndpoint[], use: () => void, failed: (error: unknown) => void): void {
    this.#latest = new AbortController();
    this.#hasPrepared = true;
    this.#prepare(endpoints, this.#latest.signal)
      .then((isReady) => {
        if (isReady) use();
      })
      .catch((error: unknown) => {
        this.discard();
        failed(error);
      });
  }

  /** The list is not wanted any more. */
  cancel(): void {
    this.#latest?.abort();
  }

  /** Gives back what was prepared and has not been used. */
  discard(): void {
    if (!this.#hasPrepared) return;
    this.#hasPrepared = false;
    this.#directory.discardPrepared();
  }

  /** Resolves to false when it has been cancelled. */
  async #prepare(endpoints: readonly ResolvedEndpoint[], cancelled: AbortSignal): Promise<boolean> {
    for (const _ of this.#directory.prepare(endpoints)) {
      await nextTurn();
      if (cancelled.aborted) return false;
    }
    return true;
  }
}
