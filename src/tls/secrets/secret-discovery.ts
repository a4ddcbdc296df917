// The interface between TLS contexts and other users of secrets, and the sources that deliver them (SDS).

import type { SdsSecretConfig, Secret } from '../../config/generated/api.js';

/** The part of a secret that a TLS context uses. */
export type TlsSecretKind = 'tls_certificate' | 'validation_context' | 'session_ticket_keys';

/** The part of a secret that its users have in common. */
export type SecretKind = TlsSecretKind | 'generic_secret';

/** A context with another version of a secret, before it is used. The owner calls one of the methods, once. */
export interface PreparedContext {
  use(): void;
  discard(): void;
}

export interface SecretUser {
  /** Makes the context with `secret` in place of the current version. Throws BatonError when that is impossible. */
  prepare(secret: Secret): PreparedContext;
  /** Called once: the secret has arrived, has been refused, or is not awaited any more. */
  settled(): void;
}

export interface SecretUse {
  /** The version in use, with the contents of its files; undefined before the first. */
  readonly secret: Secret | undefined;
  /** settled() has been called, or will not be. */
  readonly isSettled: boolean;
  close(): void;
}

export interface SecretDiscovery {
  /** Begins to use the secret that `config` names, which has a source. The user is never called before this returns. */
  use(config: SdsSecretConfig, kind: SecretKind, user: SecretUser): SecretUse;
}
