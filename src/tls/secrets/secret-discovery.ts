// The interface between TLS contexts and the sources that deliver their secrets (SDS).

import type { SdsSecretConfig, Secret } from '../../config/generated/api.js';

/** The part of a secret that a context uses. */
export type SecretKind = 'tls_certificate' | 'validation_context' | 'session_ticket_keys';

/** A context with another version of a secret, before it is used. The owner calls one of the methods, once. */
export interface PreparedContext {
  use(): void;
  discard(): void;
}

export interface SecretUser {
  /** Makes the context with `secret` in place of the present version. Throws BatonError when that is impossible. */
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
