// Counts the handshakes of a listener or of a cluster.

import { TlsStaple, type TlsState } from '../io/shim.js';
import type { CounterSlot } from '../stats/layout.js';
import { TlsStats } from '../stats/layouts/tls.js';
import type { DynamicCounter, Scope, ThreadStats } from '../stats/thread-stats.js';
import { groupName, signatureName, versionName } from './algorithms.js';
import type { Refusal } from './peer-rules.js';

/** Where connections are counted whose context has no certificates yet. */
export interface UnreadyCounter {
  readonly scope: Scope;
  readonly notReady: CounterSlot;
}

export class HandshakeStats {
  readonly #scope: Scope;
  readonly #stats: ThreadStats;
  /** `listener.<address>.ssl.` or `cluster.<name>.ssl.` */
  readonly #prefix: string;
  readonly #unready: UnreadyCounter;
  readonly #counters = new Map<string, DynamicCounter>();

  constructor(scope: Scope, stats: ThreadStats, prefix: string, unready: UnreadyCounter) {
    this.#scope = scope;
    this.#stats = stats;
    this.#prefix = prefix;
    this.#unready = unready;
  }

  secured({ cipher, group, hasPeerCertificate, isResumed, signature, staple, version }: TlsState): void {
    const { at } = TlsStats;
    this.#scope.increment(at.handshake);
    this.stapled(staple);
    if (isResumed) this.#scope.increment(at.session_reused);
    if (!hasPeerCertificate) this.#scope.increment(at.no_certificate);
    this.#count('ciphers.', cipher);
    this.#count('versions.', versionName(version));
    if (group !== '') this.#count('curves.', groupName(group));
    if (signature !== '') this.#count('sigalgs.', signatureName(signature));
  }

  /** Counts what a server did about an OCSP response. */
  stapled(staple: TlsStaple): void {
    if (staple === TlsStaple.NotRequested) return;
    const { at } = TlsStats;
    this.#scope.increment(at.ocsp_staple_requests);
    if (staple === TlsStaple.Sent) this.#scope.increment(at.ocsp_staple_responses);
    else this.#scope.increment(staple === TlsStaple.Failed ? at.ocsp_staple_failed : at.ocsp_staple_omitted);
  }

  /** Counts a failure by OpenSSL's reasons; the refusal of a certificate is counted by refused(). */
  failed(reasons: string): void {
    const { at } = TlsStats;
    if (reasons === '' || reasons.includes('certificate verify failed')) return;
    const isMissing = reasons.includes('peer did not return a certificate');
    this.#scope.increment(isMissing ? at.fail_verify_no_cert : at.connection_error);
  }

  notReady(): void {
    this.#unready.scope.increment(this.#unready.notReady);
  }

  refused(refusal: Refusal): void {
    this.#scope.increment(TlsStats.at[refusal]);
  }

  #count(kind: string, name: string): void {
    const key = kind + name;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      counter = this.#stats.dynamicCounter(this.#prefix, key);
      this.#counters.set(key, counter);
    }
    counter.increment();
  }
}
