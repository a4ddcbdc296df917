// The secrets of one context: in its configuration, by name in static_resources.secrets, or delivered by a source.

import { BatonError } from '../../common/errors/errors.js';
import type {
  CertificateValidationContext,
  CommonTlsContext,
  DownstreamTlsContext,
  SdsSecretConfig,
  Secret,
  TlsCertificate,
  TlsSessionTicketKeys,
} from '../../config/generated/api.js';
import { combinedValidation, validationMistake } from '../validation.js';
import type { SecretKind, TlsSecretKind } from './secret-discovery.js';

export interface TlsSecrets {
  readonly certificates: readonly TlsCertificate[];
  /** The secret's name of each certificate; '' for one in the context's configuration. */
  readonly certificateNames: readonly string[];
  readonly validation: CertificateValidationContext | undefined;
  readonly validationName: string;
  /** Undefined: the keys are those that contexts share. */
  readonly ticketKeys: TlsSessionTicketKeys | undefined;
}

/** The parts of a context that hold or name secrets. */
export interface SecretConfig {
  readonly common: CommonTlsContext;
  /** The settings of session tickets; only for a server. */
  readonly tickets?: Pick<DownstreamTlsContext, 'session_ticket_keys' | 'session_ticket_keys_sds_secret_config'>;
}

/** A secret that a context names. */
export interface NamedSecret {
  readonly config: SdsSecretConfig;
  readonly kind: TlsSecretKind;
}

/** Where secrets are in a configuration, for messages. */
export const WHERE = 'transport_socket.typed_config';

/** Returns the secrets that are in the configuration itself. */
export function inlineSecrets({ common, tickets }: SecretConfig): TlsSecrets {
  const { combined_validation_context: combined, tls_certificates: certificates = [], validation_context } = common;
  return {
    certificates,
    certificateNames: certificates.map(() => ''),
    validation: validation_context ?? combined?.default_validation_context,
    validationName: '',
    ticketKeys: tickets?.session_ticket_keys,
  };
}

/** Returns the secrets that a context names, of all kinds. */
export function namedSecrets(config: SecretConfig): NamedSecret[] {
  const { tls_certificate_sds_secret_configs: certificates = [] } = config.common;
  const validation = validationName(config.common);
  const tickets = config.tickets?.session_ticket_keys_sds_secret_config;
  return [
    ...certificates.map((named) => ({ config: named, kind: 'tls_certificate' }) as const),
    ...(validation === undefined ? [] : [{ config: validation, kind: 'validation_context' } as const]),
    ...(tickets === undefined ? [] : [{ config: tickets, kind: 'session_ticket_keys' } as const]),
  ];
}

/**
 * Returns all secrets of a context. `secretOf` returns a secret that it names, or undefined if that has not arrived, in which case
 * the result is undefined. Throws BatonError when a secret lacks its part, or when the parts cannot be combined.
 */
export function resolveSecrets(
  config: SecretConfig,
  secretOf: (named: NamedSecret) => Secret | undefined,
): TlsSecrets | undefined {
  const inline = inlineSecrets(config);
  const certificates = [...inline.certificates];
  const certificateNames = [...inline.certificateNames];
  let { ticketKeys, validation, validationName } = inline;
  for (const named of namedSecrets(config)) {
    const secret = secretOf(named);
    if (secret === undefined) return undefined;
    const { name = '' } = named.config;
    switch (named.kind) {
      case 'tls_certificate':
        certificates.push(partOf(secret, named.kind));
        certificateNames.push(name);
        break;
      case 'validation_context':
        validation = combinedValidation(validation, partOf(secret, named.kind));
        validationName = name;
        break;
      case 'session_ticket_keys':
        ticketKeys = partOf(secret, named.kind);
        break;
    }
  }
  checkCombined(validation);
  return { certificates, certificateNames, validation, validationName, ticketKeys };
}

/** Returns the part of a secret that a context uses. Throws BatonError without it: nothing would be verified, or presented. */
export function partOf<Kind extends SecretKind>(secret: Secret, kind: Kind): NonNullable<Secret[Kind]> {
  const part = secret[kind];
  if (part != null) return part;
  throw new BatonError('CONFIG_INVALID', `the secret '${secret.name ?? ''}' has no ${kind}`, { where: WHERE });
}

function validationName(common: CommonTlsContext): SdsSecretConfig | undefined {
  const { combined_validation_context: combined } = common;
  return common.validation_context_sds_secret_config ?? combined?.validation_context_sds_secret_config;
}

/** The parts may be right and their combination wrong. */
function checkCombined(validation: CertificateValidationContext | undefined): void {
  const mistake = validation && validationMistake(validation);
  if (mistake === undefined) return;
  const where = `${WHERE}.common_tls_context.validation_context.${mistake.field}`;
  throw new BatonError('CONFIG_INVALID', mistake.message, { where });
}
