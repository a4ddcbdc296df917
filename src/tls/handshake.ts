// One handshake: judges the peer's certificate, counts the outcome, and describes it.

import { CONTEXT_NOT_READY } from '../io/shim.js';
import { SessionSecurity } from '../io/tls/session-security.js';
import type { PresentedCertificate } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { groupName, versionName } from './algorithms.js';
import { failureText } from './failure-text.js';
import type { HandshakeStats } from './handshake-stats.js';
import type { KeyLog, LoggedEnds } from './key-log.js';
import { type ExpectedNames, peerRules, SVID_REFUSED } from './peer-rules.js';

/** X509_V_ERR_SUBTREE_MINMAX: a number for which OpenSSL sends the alert certificate_unknown, as Envoy does. */
const REFUSED = 49;
/** Envoy's text. */
const NO_SECRETS = 'TLS_error: Secret is not supplied by SDS';
/** See TransportOptions.onVerdict(). */
const UNVERIFIED = -1;

export class TlsHandshake {
  readonly #stats: HandshakeStats;
  readonly #names: ExpectedNames | undefined;
  readonly #keyLog: KeyLog | undefined;
  #detail = '';

  /** `names`: that the peer must have besides those of the context. */
  constructor(stats: HandshakeStats, names?: ExpectedNames, keyLog?: KeyLog) {
    this.#stats = stats;
    this.#names = names;
    this.#keyLog = keyLog;
  }

  /** See ConnectionHandler.judgePeer(). */
  judge({ depth, error, errorText, facts, rules }: PresentedCertificate): number {
    const verdict = peerRules(rules).judge(error, depth, errorText, facts, this.#names);
    if (verdict.refusal !== undefined) this.#stats.refused(verdict.refusal);
    this.#detail = verdict.detail;
    if (verdict.isAccepted) return verdict.isVerified ? 0 : UNVERIFIED;
    return error === 0 || error === SVID_REFUSED ? REFUSED : error;
  }

  /** Called when it has finished. Returns undefined if the connection is gone. `ends`: of the connection. */
  secured(transport: Transport, id: number, ends: LoggedEnds): SessionSecurity | undefined {
    this.#keyLog?.write(transport.takeTlsKeys(id), ends);
    const state = transport.tlsState(id);
    if (state === undefined) return undefined;
    this.#stats.secured(state);
    return new SessionSecurity(transport, id, state, versionName(state.version), groupName(state.group));
  }

  /** Called when it has failed. Returns the text for logs; '' if the peer has ended it. */
  failed(transport: Transport, id: number, ends: LoggedEnds, reasons: string): string {
    this.abandoned(transport, id, ends);
    if (reasons === CONTEXT_NOT_READY) {
      this.#stats.notReady();
      return NO_SECRETS;
    }
    this.#stats.failed(reasons);
    return failureText(reasons, this.#detail);
  }

  /** Called when it ends in another way, before the connection is closed. */
  abandoned(transport: Transport, id: number, ends: LoggedEnds): void {
    this.#keyLog?.write(transport.takeTlsKeys(id), ends);
    this.#stats.stapled(transport.tlsStaple(id));
  }
}
