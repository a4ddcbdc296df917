// The TLS contexts of the process: the primary makes them in the native engine, and all threads use them by number.

import { randomBytes } from 'node:crypto';
import { BatonError } from '../common/errors/errors.js';
import { readDataSource } from '../config/fields/data-source.js';
import type {
  CommonTlsContext,
  DownstreamTlsContext,
  SdsSecretConfig,
  Secret,
  UpstreamTlsContext,
} from '../config/generated/api.js';
import { loadShim, type NativeShim, type TlsContextSettings, type TlsMistake } from '../io/shim.js';
import { type ContextCertificates, contextCertificates } from './context-certificates.js';
import { clientSettings, inlineSecrets, serverSettings, type TlsSecrets } from './context-settings.js';
import { combinedValidation, validationMistake } from './validation.js';

/** A context in use. */
export interface TlsContextUse {
  /** For Transport.startTls(). */
  readonly number: number;
  /** Connections keep the context until they end. */
  release(): void;
}

/** A mistake in a TLS context of the configuration; `path` is relative to it. */
export interface ContextMistake {
  readonly path: string;
  readonly message: string;
}

const WHERE = 'transport_socket.typed_config';

const TICKET_KEY_BYTES = 80;
const ROTATION_MS = 12 * 3_600_000;

export class TlsContexts {
  readonly #shim: NativeShim;
  /** static_resources.secrets by name. */
  readonly #secrets: ReadonlyMap<string, Secret>;
  /** Keys that encrypt session tickets, the newest first; undefined: no server needs any. */
  #ticketKeys: Buffer | undefined;
  #rotation: NodeJS.Timeout | undefined;
  /** Of the contexts in use, by number. */
  readonly #certificates = new Map<number, ContextCertificates>();

  constructor(shim: NativeShim, secrets: readonly Secret[]) {
    this.#shim = shim;
    this.#secrets = new Map(secrets.map((secret) => [secret.name ?? '', secret]));
  }

  /** Throws a BatonError CONFIG_INVALID for settings that OpenSSL refuses, and CONFIG_UNREADABLE for files. */
  server(context: DownstreamTlsContext, serverNames: readonly string[]): TlsContextUse {
    const secrets = this.#secretsOf(context.common_tls_context ?? {});
    const settings = serverSettings(context, secrets, serverNames);
    const use = this.#make(settings, secrets);
    const named = context.session_ticket_keys_sds_secret_config;
    const keys =
      named === undefined
        ? context.session_ticket_keys
        : present(this.#named(named).session_ticket_keys, 'session_ticket_keys', named);
    if (keys !== undefined) {
      const bytes = Buffer.concat((keys.keys ?? []).map((source) => readDataSource(source)));
      this.#shim.setTicketKeys(bytes, use.number);
    } else if (settings.hasTickets) {
      this.#shareTicketKeys();
    }
    return use;
  }

  /** Throws as server() does. */
  client(context: UpstreamTlsContext): TlsContextUse {
    const secrets = this.#secretsOf(context.common_tls_context ?? {});
    return this.#make(clientSettings(context, secrets), secrets);
  }

  close(): void {
    clearInterval(this.#rotation);
  }

  /** The certificates of each context in use. */
  certificates(): Iterable<ContextCertificates> {
    return this.#certificates.values();
  }

  #make(settings: TlsContextSettings, secrets: TlsSecrets): TlsContextUse {
    const made = this.#shim.createTlsContext(settings);
    if (typeof made !== 'number') {
      const { message, path } = located(made);
      throw new BatonError('CONFIG_INVALID', message, { where: `${WHERE}.${path}` });
    }
    this.#certificates.set(made, contextCertificates(this.#shim, secrets, settings));
    const release = () => {
      this.#certificates.delete(made);
      this.#shim.releaseTlsContext(made);
    };
    return { number: made, release };
  }

  #secretsOf(context: CommonTlsContext): TlsSecrets {
    const inline = inlineSecrets(context);
    const {
      combined_validation_context: combined,
      tls_certificate_sds_secret_configs: certificates = [],
      validation_context_sds_secret_config: validation = combined?.validation_context_sds_secret_config,
    } = context;
    const combinedContext = combinedValidation(
      inline.validation,
      validation && present(this.#named(validation).validation_context, 'validation_context', validation),
    );
    // The parts may be right and their combination wrong.
    const mistake = combinedContext && validationMistake(combinedContext);
    if (mistake !== undefined) {
      const where = `${WHERE}.common_tls_context.validation_context.${mistake.field}`;
      throw new BatonError('CONFIG_INVALID', mistake.message, { where });
    }
    return {
      certificates: [
        ...inline.certificates,
        ...certificates.map((name) => present(this.#named(name).tls_certificate, 'tls_certificate', name)),
      ],
      validation: combinedContext,
    };
  }

  #named({ name = '' }: SdsSecretConfig): Secret {
    const secret = this.#secrets.get(name);
    if (secret !== undefined) return secret;
    throw new BatonError('CONFIG_INVALID', `Unknown static secret: ${name}`, { where: WHERE });
  }

  /** Creates the keys of session tickets, which are replaced every 12 hours; the previous ones still decrypt. */
  #shareTicketKeys(): void {
    if (this.#ticketKeys !== undefined) return;
    this.#rotateTicketKeys();
    this.#rotation = setInterval(() => this.#rotateTicketKeys(), ROTATION_MS).unref();
  }

  #rotateTicketKeys(): void {
    const previous = this.#ticketKeys?.subarray(0, TICKET_KEY_BYTES) ?? Buffer.alloc(0);
    this.#ticketKeys = Buffer.concat([randomBytes(TICKET_KEY_BYTES), previous]);
    this.#shim.setTicketKeys(this.#ticketKeys);
  }
}

/** Throws unless the secret has the part that a context names: without it nothing would be verified, or presented. */
function present<T>(value: T | undefined, part: string, { name = '' }: SdsSecretConfig): T {
  if (value !== undefined) return value;
  throw new BatonError('CONFIG_INVALID', `static secret '${name}' has no ${part}`, { where: WHERE });
}

/** Returns what the native engine refuses in settings; undefined: it takes them. */
export function checkSettings(settings: TlsContextSettings): ContextMistake | undefined {
  const shim = loadShim();
  const made = shim.createTlsContext(settings);
  if (typeof made !== 'number') return located(made);
  shim.releaseTlsContext(made);
  return undefined;
}

/** The fields of the configuration that the settings come from. */
const PATHS: { readonly [field: string]: string } = {
  minVersion: 'common_tls_context.tls_params.tls_minimum_protocol_version',
  maxVersion: 'common_tls_context.tls_params.tls_maximum_protocol_version',
  ciphers: 'common_tls_context.tls_params.cipher_suites',
  groups: 'common_tls_context.tls_params.ecdh_curves',
  signatureAlgorithms: 'common_tls_context.tls_params.signature_algorithms',
  alpn: 'common_tls_context.alpn_protocols',
  roots: 'common_tls_context.validation_context.trusted_ca',
  crl: 'common_tls_context.validation_context.crl',
};

function located({ field, reason }: TlsMistake): ContextMistake {
  const index = /^identities(\[\d+\])$/.exec(field)?.[1];
  if (index === undefined)
    return { path: PATHS[field] ?? 'common_tls_context', message: `OpenSSL refuses it: ${reason}` };
  const [part, ...rest] = reason.split(': ');
  return {
    path: `common_tls_context.tls_certificates${index}.${part}`,
    message: `OpenSSL refuses it: ${rest.join(': ')}`,
  };
}
