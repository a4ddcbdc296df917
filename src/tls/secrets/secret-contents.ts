// The files that a delivered secret names: their contents replace their names, so that what was read together is used together.

import { BatonError, messageOf } from '../../common/errors/errors.js';
import { readRegularFile } from '../../common/files/regular-file.js';
import type { DataSource, Secret, SPIFFECertValidatorConfig } from '../../config/generated/api.js';
import { MAX_SECRET_BYTES } from '../../config/schema/certificates.js';
import { spiffeValidator } from '../trust-domains.js';
import { partOf } from './context-secrets.js';
import type { SecretKind } from './secret-discovery.js';

/** A list of 100,000 revoked certificates has 4 MB. */
const MAX_CRL_BYTES = 8 * MAX_SECRET_BYTES;
/** Files that change while they are read are read again this often. */
const MAX_READS = 5;

/** Returns the files, each with the directory that its source or the secret names for watching. */
export function filesOf(secret: Secret, kind: SecretKind): Map<string, string | undefined> {
  const { tls_certificate: certificate, validation_context: validation } = secret;
  const ofSecret = (certificate ?? validation)?.watched_directory?.path;
  const found = new Map<string, string | undefined>();
  mapSources(secret, kind, (source) => {
    const { filename, watched_directory: directory } = source;
    if (filename !== undefined) found.set(filename, directory?.path ?? ofSecret);
    return source;
  });
  return found;
}

/**
 * Returns those files of a secret in the configuration itself that are watched: they, or the secret, name a directory for that. A map of trust
 * bundles is always watched.
 */
export function watchedFilesOf(secret: Secret, kind: SecretKind): Map<string, string | undefined> {
  const files = filesOf(secret, kind);
  const bundles = spiffeValidator(secret.validation_context)?.trust_bundles?.filename;
  for (const [path, directory] of files) if (directory === undefined && path !== bundles) files.delete(path);
  return files;
}

/**
 * Returns the secret with the contents of its files. Throws BatonError for a file that cannot be read, data that is too large, or
 * a missing part.
 */
export function withContents(secret: Secret, kind: SecretKind): Secret {
  const contents = readTogether(secret, kind);
  return mapSources(secret, kind, (source, place) => {
    const bytes = source.filename === undefined ? undefined : contents.get(source.filename);
    const most = mostOf(place);
    const size = bytes?.length ?? (source.inline_bytes ?? source.inline_string ?? '').length;
    if (size > most) throw refused(place, `it is larger than ${most >> 20} MiB`);
    return bytes === undefined ? source : { inline_bytes: bytes.toString('base64') };
  });
}

/** Reads all files until two readings are equal: a certificate and its key may be replaced in between. */
function readTogether(secret: Secret, kind: SecretKind): ReadonlyMap<string, Buffer> {
  let read = readOnce(secret, kind);
  for (let count = 1; count < MAX_READS && read.size > 1; count++) {
    const again = readOnce(secret, kind);
    const isSame = [...again].every(([name, bytes]) => read.get(name)?.equals(bytes));
    read = again;
    if (isSame) break;
  }
  return read;
}

function readOnce(secret: Secret, kind: SecretKind): Map<string, Buffer> {
  const contents = new Map<string, Buffer>();
  mapSources(secret, kind, (source, place) => {
    const { filename } = source;
    if (filename === undefined || contents.has(filename)) return source;
    try {
      contents.set(filename, readRegularFile(filename, mostOf(place)));
    } catch (error) {
      throw refused(place, `unable to read file: ${messageOf(error)}`, error);
    }
    return source;
  });
  return contents;
}

function mostOf(place: string): number {
  return place === 'validation_context.crl' ? MAX_CRL_BYTES : MAX_SECRET_BYTES;
}

function refused(where: string, message: string, cause?: unknown): BatonError {
  return new BatonError('CONFIG_UNREADABLE', message, { where, cause });
}

/** Returns a secret with other data. `map` receives each source of the part with its path. */
function mapSources(secret: Secret, kind: SecretKind, map: (source: DataSource, place: string) => DataSource): Secret {
  if (kind === 'session_ticket_keys') {
    const { keys = [] } = partOf(secret, kind);
    return {
      ...secret,
      session_ticket_keys: { keys: keys.map((key, index) => map(key, `session_ticket_keys.keys[${index}]`)) },
    };
  }
  if (kind === 'generic_secret') {
    const { secret: source } = partOf(secret, kind);
    const generic = source === undefined ? {} : { secret: map(source, 'generic_secret.secret') };
    return { ...secret, generic_secret: generic };
  }
  const part: { [field: string]: unknown } = { ...partOf(secret, kind) };
  for (const field of SOURCES[kind]) {
    const source = part[field] as DataSource | undefined;
    if (source !== undefined) part[field] = map(source, `${kind}.${field}`);
  }
  const validator = spiffeValidator(secret.validation_context);
  if (kind === 'validation_context' && validator !== undefined) {
    const place = 'validation_context.custom_validator_config.typed_config';
    part['custom_validator_config'] = {
      ...secret.validation_context!.custom_validator_config,
      typed_config: mapBundles(validator, (source, field) => map(source, `${place}.${field}`)),
    };
  }
  return { ...secret, [kind]: part };
}

function mapBundles(
  validator: SPIFFECertValidatorConfig,
  map: (source: DataSource, field: string) => DataSource,
): SPIFFECertValidatorConfig {
  const { trust_bundles: bundles, trust_domains: domains = [] } = validator;
  return {
    ...validator,
    ...(bundles && { trust_bundles: map(bundles, 'trust_bundles') }),
    trust_domains: domains.map((domain, index) => {
      const { trust_bundle: bundle } = domain;
      return bundle === undefined
        ? domain
        : { ...domain, trust_bundle: map(bundle, `trust_domains[${index}].trust_bundle`) };
    }),
  };
}

const SOURCES = {
  tls_certificate: ['certificate_chain', 'private_key', 'pkcs12', 'password', 'ocsp_staple'],
  validation_context: ['trusted_ca', 'crl'],
} as const;
