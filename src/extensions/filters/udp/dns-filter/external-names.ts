// Names that a DNS filter resolves with name servers, a bounded number at a time.

import { DnsResolver, type ResolverSettings } from '../../../sdk.js';

export interface ExternalNamesOptions {
  readonly settings: ResolverSettings | undefined;
  /** Time limit of one query. */
  readonly timeoutMs: number;
  /** Further queries after one that has failed or timed out. */
  readonly retries: number;
  readonly maxPending: number;
  /** Called before each callback: it runs outside of a turn, when the time is stale. */
  readonly beginTurn: () => void;
  /** Called with exceptions of callbacks. */
  readonly failed: (error: unknown) => void;
}

export class ExternalNames {
  readonly #resolver: DnsResolver;
  readonly #maxPending: number;
  readonly #beginTurn: () => void;
  readonly #failed: (error: unknown) => void;
  pending = 0;

  constructor({ beginTurn, failed, maxPending, retries, settings, timeoutMs }: ExternalNamesOptions) {
    const attempts = retries + 1;
    const deadlineMs = timeoutMs * attempts;
    this.#resolver = new DnsResolver({
      queryTimeoutMs: timeoutMs,
      attempts,
      deadlineMs,
      ...(settings && { settings }),
    });
    this.#maxPending = maxPending;
    this.#beginTurn = beginTurn;
    this.#failed = failed;
  }

  /** Calls `done` with the addresses of a name, once; none if it has none, or if too many names are being resolved. */
  resolve(name: string, isIp6: boolean, done: (addresses: readonly string[]) => void): void {
    if (this.pending >= this.#maxPending) return done([]);
    this.pending++;
    void this.#resolve(name, isIp6)
      .then((addresses) => {
        this.#beginTurn();
        done(addresses);
      })
      .catch(this.#failed);
  }

  /** Never rejects: the place among the pending names must become free. */
  async #resolve(name: string, isIp6: boolean): Promise<readonly string[]> {
    try {
      const result = await this.#resolver.resolve(name, isIp6 ? 'V6_ONLY' : 'V4_ONLY');
      return result.status === 'found' ? result.addresses : [];
    } catch (error) {
      this.#failed(error);
      return [];
    } finally {
      this.pending--;
    }
  }

  /** Cancels what is being resolved. */
  close(): void {
    this.#resolver.close();
  }
}
