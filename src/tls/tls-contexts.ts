// The TLS contexts of the process: the primary makes them in the native engine, and all threads use them by number.

import { BatonError } from '../common/errors/errors.js';
import type { DownstreamTlsContext, Secret, UpstreamTlsContext } from '../config/generated/api.js';
import type { NativeShim } from '../io/shim.js';
import type { StatsStore } from '../stats/store.js';
import type { ContextCertificates } from './context-certificates.js';
import { clientSettings, serverSettings } from './context-settings.js';
import { type ContextOwner, type ContextRecipe, LiveContext } from './live-context.js';
import { WHERE } from './secrets/context-secrets.js';
import type { SecretDiscovery } from './secrets/secret-discovery.js';
import { SharedTicketKeys, type TicketKeys } from './shared-ticket-keys.js';
import { SourceReader } from './source-reader.js';

/** A context in use. */
export interface TlsContextUse {
  /** For Transport.startTls(). */
  readonly number: number;
  /** Connections keep the context until they end. */
  release(): void;
}

/** When the first of all certificates and OCSP responses in use expires, in ms since 1970; Infinity without any. */
export interface FirstExpiries {
  readonly certificateMs: number;
  readonly ocspMs: number;
}

export class TlsContexts {
  readonly #shim: NativeShim;
  readonly #store: StatsStore;
  /** static_resources.secrets by name. */
  readonly #secrets: ReadonlyMap<string, Secret>;
  readonly #ticketKeys: SharedTicketKeys;
  readonly #contexts = new Set<LiveContext>();
  #discovery: SecretDiscovery | undefined;
  /** Undefined: not computed since a certificate has changed. */
  #firstExpiries: FirstExpiries | undefined;

  /** `inherited`: ticket keys of the parent process. */
  constructor(shim: NativeShim, store: StatsStore, secrets: readonly Secret[], inherited?: TicketKeys) {
    this.#shim = shim;
    this.#store = store;
    this.#secrets = new Map(secrets.map((secret) => [secret.name ?? '', secret]));
    this.#ticketKeys = new SharedTicketKeys(shim, inherited);
  }

  /** Sets what delivers secrets from sources. Called before the first context is made. */
  discoverWith(discovery: SecretDiscovery): void {
    this.#discovery = discovery;
  }

  /**
   * `serverNames`: see serverSettings(). Throws a BatonError CONFIG_INVALID for settings that OpenSSL refuses, and
   * CONFIG_UNREADABLE for files.
   */
  server(context: DownstreamTlsContext, serverNames: readonly string[], owner: ContextOwner): TlsContextUse {
    const config = { common: context.common_tls_context ?? {}, tickets: context };
    const reader = new SourceReader();
    const settings: ContextRecipe['settings'] = (secrets) => serverSettings(context, secrets, serverNames, reader.read);
    return this.#make({ isServer: true, ...config, reader, settings }, owner);
  }

  /** Throws as server() does. */
  client(context: UpstreamTlsContext, owner: ContextOwner): TlsContextUse {
    const config = { common: context.common_tls_context ?? {} };
    const reader = new SourceReader();
    const settings: ContextRecipe['settings'] = (secrets) => clientSettings(context, secrets, reader.read);
    return this.#make({ isServer: false, ...config, reader, settings }, owner);
  }

  /** The ticket keys for a child process; undefined without any. */
  get ticketKeys(): TicketKeys | undefined {
    return this.#ticketKeys.current;
  }

  /** Yields the certificates of each context that has all its secrets. */
  *certificates(): Generator<ContextCertificates, void> {
    for (const { certificates } of this.#contexts) if (certificates !== undefined) yield certificates;
  }

  get firstExpiries(): FirstExpiries {
    return (this.#firstExpiries ??= firstExpiries(this.certificates()));
  }

  #make(recipe: ContextRecipe, owner: ContextOwner): TlsContextUse {
    const context = new LiveContext(recipe, owner, {
      shim: this.#shim,
      store: this.#store,
      ticketKeys: this.#ticketKeys,
      staticSecret: (name) => this.#named(name),
      discover: (config, kind, user) => this.#discovery!.use(config, kind, user),
      changed: () => {
        this.#firstExpiries = undefined;
      },
    });
    this.#contexts.add(context);
    const release = () => {
      this.#contexts.delete(context);
      context.release();
    };
    return { number: context.number, release };
  }

  #named(name: string): Secret {
    const secret = this.#secrets.get(name);
    if (secret !== undefined) return secret;
    throw new BatonError('CONFIG_INVALID', `Unknown static secret: ${name}`, { where: WHERE });
  }
}

function firstExpiries(contexts: Iterable<ContextCertificates>): FirstExpiries {
  let certificateMs = Number.POSITIVE_INFINITY;
  let ocspMs = Number.POSITIVE_INFINITY;
  for (const { ca, chain } of contexts) {
    for (const { certificate } of [...ca, ...chain]) certificateMs = Math.min(certificateMs, certificate.validUntilMs);
    for (const { ocsp } of chain) if (ocsp !== undefined) ocspMs = Math.min(ocspMs, ocsp.nextUpdate * 1000);
  }
  return { certificateMs, ocspMs };
}
