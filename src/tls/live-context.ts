// A TLS context in use. When a source delivers another version of one of its secrets, the native engine gets a new context under
// the same number: handshakes that begin later use it, on all threads, and no handshake fails in between.

import { BatonError, messageOf } from '../common/errors/errors.js';
import { shownName } from '../common/text/shown.js';
import { isFileSource } from '../config/fields/file-of-source.js';
import type { Secret } from '../config/generated/api.js';
import type { NativeShim, TlsContextSettings } from '../io/shim.js';
import { getLogger } from '../log/logger.js';
import { TlsFactoryStats } from '../stats/layouts/tls.js';
import type { StatsStore } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import { type ContextCertificates, contextCertificates } from './context-certificates.js';
import { located } from './context-mistake.js';
import { ExpiryGauges } from './expiry-gauges.js';
import {
  inlineSecrets,
  type NamedSecret,
  namedSecrets,
  resolveSecrets,
  type SecretConfig,
  type TlsSecrets,
  WHERE,
} from './secrets/context-secrets.js';
import { watchedFilesOf } from './secrets/secret-contents.js';
import type { PreparedContext, SecretDiscovery, SecretKind, SecretUse } from './secrets/secret-discovery.js';
import { WatchedFiles } from './secrets/watched-files.js';
import type { SharedTicketKeys } from './shared-ticket-keys.js';
import type { SourceReader } from './source-reader.js';

const logger = getLogger('config');

/** What a context is made of, apart from its secrets. */
export interface ContextRecipe extends SecretConfig {
  readonly isServer: boolean;
  readonly reader: SourceReader;
  /** Throws BatonError for a file that cannot be read. */
  settings(secrets: TlsSecrets): TlsContextSettings;
}

/** A filter chain or a version of a cluster. */
export interface ContextOwner {
  /** Prefix of its TLS stats: `listener.<address>.ssl.` */
  readonly statPrefix: string;
  /** Its scope with TlsFactoryStats. */
  readonly factoryStats: Scope;
  /** Adds an init target, which waits for a secret. */
  waitFor(name: string, isLocal: boolean): { ready(): void };
}

/** What all contexts share. */
export interface ContextEngine {
  readonly shim: NativeShim;
  readonly store: StatsStore;
  readonly ticketKeys: SharedTicketKeys;
  /** Throws BatonError for an unknown name. */
  staticSecret(name: string): Secret;
  readonly discover: SecretDiscovery['use'];
  /** Called when the certificates of a context have changed. */
  changed(): void;
}

/** A context of the native engine, with what is shown of it. */
interface Made {
  readonly number: number;
  readonly certificates: ContextCertificates;
  readonly gauges: ExpiryGauges;
}

export class LiveContext {
  /** For Transport.startTls(). Handshakes fail until all secrets have arrived. */
  readonly number: number;
  readonly #recipe: ContextRecipe;
  readonly #owner: ContextOwner;
  readonly #engine: ContextEngine;
  /** Secrets from sources, by keyOf(). */
  readonly #uses = new Map<string, SecretUse>();
  readonly #targets: { ready(): void }[] = [];
  /** Those of the configuration itself that are watched. */
  readonly #files: WatchedFiles;
  #inUse: Made | undefined;
  /** Number of contexts that were put into use. */
  #generation = 0;
  #isReleased = false;

  /** Throws BatonError, with nothing left behind, when the context cannot be made of the secrets that are known. */
  constructor(recipe: ContextRecipe, owner: ContextOwner, engine: ContextEngine) {
    this.#recipe = recipe;
    this.#owner = owner;
    this.#engine = engine;
    // Before the files are read.
    this.#files = staticFiles(recipe, engine);
    const discovered = namedSecrets(recipe).filter(({ config }) => config.sds_config !== undefined);
    if (discovered.length === 0) {
      const made = this.#make(this.#resolve()!);
      this.number = made.number;
      this.#show(made);
      this.#watch();
      return;
    }
    this.number = engine.shim.reserveTlsContext(recipe.isServer);
    try {
      for (const named of discovered) this.#subscribe(named);
      const secrets = this.#resolve();
      if (secrets !== undefined) this.#replace(this.#make(secrets));
      this.#watch();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Undefined while a secret is missing. */
  get certificates(): ContextCertificates | undefined {
    return this.#inUse?.certificates;
  }

  /** Connections keep the context until they end. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#files.close();
    for (const target of this.#targets) target.ready();
    for (const use of this.#uses.values()) use.close();
    this.#engine.shim.releaseTlsContext(this.number);
    this.#inUse?.gauges.remove();
    this.#inUse = undefined;
    this.#engine.changed();
  }

  #subscribe(named: NamedSecret): void {
    const key = keyOf(named);
    if (this.#uses.has(key)) return;
    const { config, kind } = named;
    let target: { ready(): void } | undefined;
    const use = this.#engine.discover(config, kind, {
      prepare: (secret) => this.#prepare(key, secret),
      settled: () => target?.ready(),
    });
    this.#uses.set(key, use);
    if (use.isSettled) return;
    target = this.#owner.waitFor(`SdsApi ${config.name ?? ''}`, isFileSource(config.sds_config));
    this.#targets.push(target);
  }

  #prepare(key: string, secret: Secret): PreparedContext {
    const basis = this.#generation;
    const secrets = this.#resolve(key, secret);
    const made = secrets && this.#make(secrets);
    return {
      use: () => {
        // As in Envoy: also while another secret is missing.
        this.#owner.factoryStats.increment(TlsFactoryStats.at.ssl_context_update_by_sds);
        if (made !== undefined && basis === this.#generation && !this.#isReleased) return this.#replace(made);
        if (made !== undefined) this.#discard(made);
        this.#remake();
      },
      discard: () => made && this.#discard(made),
    };
  }

  /** Called when several secrets have changed at the same time: each alone was usable. */
  #remake(): void {
    if (this.#isReleased) return;
    try {
      const secrets = this.#resolve();
      if (secrets !== undefined) this.#replace(this.#make(secrets));
    } catch (error) {
      const what = `the secrets of ${shownName(this.#owner.statPrefix)}* cannot be used together`;
      logger.error(`${what}, and the previous ones stay in use: ${messageOf(error)}`);
    }
  }

  #watch(): void {
    if (this.#files.isEmpty) {
      if (this.#uses.size === 0) this.#recipe.reader.clear();
      return;
    }
    this.#files.watch(() => this.#reload());
  }

  /** Called when a watched file has changed. A pair of files may be in the middle of a change: the second one calls this again. */
  #reload(): void {
    if (this.#isReleased) return;
    const restore = this.#recipe.reader.forget(this.#files.paths);
    const where = `${shownName(this.#owner.statPrefix)}*`;
    try {
      const secrets = this.#resolve();
      if (secrets !== undefined) this.#replace(this.#make(secrets));
      logger.info(`the files of ${where} were read again`);
    } catch (error) {
      restore();
      logger.warning(`the changed files of ${where} are not used, and the previous contents stay: ${reasonOf(error)}`);
    }
  }

  /** Returns the secrets, of which `changing` has the value `next`; undefined while one is missing. */
  #resolve(changing?: string, next?: Secret): TlsSecrets | undefined {
    return resolveSecrets(this.#recipe, (named) => {
      if (named.config.sds_config === undefined) return this.#engine.staticSecret(named.config.name ?? '');
      const key = keyOf(named);
      return key === changing ? next : this.#uses.get(key)!.secret;
    });
  }

  #make(secrets: TlsSecrets): Made {
    const { shim, store, ticketKeys } = this.#engine;
    const settings = this.#recipe.settings(secrets);
    const number = shim.createTlsContext(settings);
    if (typeof number !== 'number') {
      const { message, path } = located(number);
      throw new BatonError('CONFIG_INVALID', message, { where: `${WHERE}.${path}` });
    }
    try {
      if (secrets.ticketKeys !== undefined) {
        const keys = (secrets.ticketKeys.keys ?? []).map((source) => this.#recipe.reader.read(source));
        shim.setTicketKeys(Buffer.concat(keys), number);
      } else if (settings.hasTickets) ticketKeys.require();
      const certificates = contextCertificates(shim, secrets, settings);
      return { number, certificates, gauges: new ExpiryGauges(store, this.#owner.statPrefix, certificates) };
    } catch (error) {
      shim.releaseTlsContext(number);
      throw error;
    }
  }

  #discard({ gauges, number }: Made): void {
    gauges.remove();
    this.#engine.shim.releaseTlsContext(number);
  }

  #replace(made: Made): void {
    this.#engine.shim.replaceTlsContext(this.number, made.number);
    this.#generation++;
    this.#show(made);
  }

  #show(made: Made): void {
    this.#inUse?.gauges.remove();
    made.gauges.set();
    warnOfFutureOcsp(made.certificates);
    this.#inUse = made;
    this.#engine.changed();
  }
}

/** Clients refuse such a response; the clock of this machine may be wrong. */
function warnOfFutureOcsp({ chain }: ContextCertificates): void {
  for (const { ocsp, path } of chain) {
    if (ocsp === undefined || ocsp.thisUpdate * 1000 <= Date.now()) continue;
    const time = new Date(ocsp.thisUpdate * 1000).toISOString();
    logger.warning(`the OCSP response for the certificate ${path} is valid only from ${time}`);
  }
}

/** Returns the watched files of the secrets in the configuration itself. */
function staticFiles(recipe: ContextRecipe, engine: ContextEngine): WatchedFiles {
  const files = new Map<string, string | undefined>();
  const add = (secret: Secret, kind: SecretKind) => {
    for (const [path, directory] of watchedFilesOf(secret, kind)) files.set(path, directory);
  };
  const { certificates, ticketKeys, validation } = inlineSecrets(recipe);
  for (const certificate of certificates) add({ tls_certificate: certificate }, 'tls_certificate');
  if (validation !== undefined) add({ validation_context: validation }, 'validation_context');
  if (ticketKeys !== undefined) add({ session_ticket_keys: ticketKeys }, 'session_ticket_keys');
  for (const { config, kind } of namedSecrets(recipe)) {
    if (config.sds_config !== undefined) continue;
    const secret = engine.staticSecret(config.name ?? '');
    if (secret[kind] !== undefined) add(secret, kind);
  }
  return new WatchedFiles(files);
}

function reasonOf(error: unknown): string {
  return error instanceof BatonError ? error.describe() : messageOf(error);
}

function keyOf({ config, kind }: NamedSecret): string {
  return JSON.stringify([kind, config]);
}
