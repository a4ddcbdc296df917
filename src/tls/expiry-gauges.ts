// The gauges `<prefix>certificate.<name>.expiration_unix_time_seconds` of one context.

import { CertificateStats } from '../stats/layouts/tls.js';
import type { StatsStore } from '../stats/store.js';
import type { ScopeRef } from '../stats/thread-stats.js';
import type { ContextCertificates, LoadedCertificate } from './context-certificates.js';

export class ExpiryGauges {
  readonly #store: StatsStore;
  readonly #gauges: readonly { readonly ref: ScopeRef; readonly seconds: number }[];

  /** Adds the gauges; contexts with the same prefix share those of the same name. Throws a RangeError when memory is short. */
  constructor(store: StatsStore, prefix: string, { ca, chain }: ContextCertificates) {
    this.#store = store;
    const all = [...chain, ...ca];
    const refs = store.addScopes(
      all.map(({ statName }) => ({ prefix: `${prefix}certificate.${statName}.`, layout: CertificateStats })),
    );
    this.#gauges = refs.map((ref, index) => ({ ref, seconds: expirySeconds(all[index]!) }));
  }

  /** Called when the context is put into use. */
  set(): void {
    for (const { ref, seconds } of this.#gauges) {
      this.#store.scope(ref).set(CertificateStats.at.expiration_unix_time_seconds, seconds);
    }
  }

  remove(): void {
    for (const { ref } of this.#gauges) this.#store.removeScope(ref);
  }
}

function expirySeconds({ certificate }: LoadedCertificate): number {
  return Math.floor(certificate.validUntilMs / 1000);
}
