// Checks certificates, keys and other data of transport sockets: they must be readable, valid PEM, and match each other.
//
// They are checked in any configuration, also in parts that are refused for other reasons, so that all mistakes are reported at
// once.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { messageOf } from '../../common/errors/errors.js';
import { readRegularFile } from '../../common/files/regular-file.js';
import type { DataSource, Messages } from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

/** The checks, by message. They receive the message as it is written. */
export const CREDENTIALS: {
  readonly [message: string]: (message: never, path: Path, problems: Problems) => void;
} = {
  [`${TLS}.TlsCertificate`]: checkCertificate,
  [`${TLS}.CertificateValidationContext`]: checkTrust,
  [`${TLS}.TlsSessionTicketKeys`]: checkTicketKeys,
  [`${TLS}.GenericSecret`]: checkSecret,
};

/** Limit for each part of a secret that a source delivers. The primary parses it for each context: 0.2 ms for a certificate. */
export const MAX_SECRET_BYTES = 1024 * 1024;

/** Returns whether a message of these checks names a file, or is larger than a delivered secret may be. */
export function isForProvider(message: object): boolean {
  return Object.values(message).some((value) => (Array.isArray(value) ? value : [value]).some(isFileOrLarge));
}

function isFileOrLarge(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { filename, inline_bytes: bytes, inline_string: text } = value as DataSource;
  return filename !== undefined || (bytes ?? text ?? '').length > MAX_SECRET_BYTES;
}

function checkCertificate(certificate: Messages[`${typeof TLS}.TlsCertificate`], path: Path, problems: Problems): void {
  const {
    certificate_chain: chainSource,
    private_key: keySource,
    private_key_provider: provider,
    pkcs12,
    ocsp_staple: staple,
  } = certificate;
  if (staple?.inline_string !== undefined)
    problems.error([...path, 'ocsp_staple'], 'OCSP staple cannot be provided via inline_string: use inline_bytes');
  else read(staple, [...path, 'ocsp_staple'], problems);
  const password = read(certificate.password, [...path, 'password'], problems)
    ?.toString()
    .replace(/\r?\n$/, '');
  if (pkcs12) {
    checkPkcs12(pkcs12, password, [...path, 'pkcs12'], problems);
    return;
  }
  if (!chainSource || !(keySource || provider)) {
    if (problems.has([...path, 'certificate_chain']) || problems.has([...path, 'private_key'])) return;
    problems.error(path, 'a certificate needs certificate_chain and private_key, or pkcs12');
  }
  const chain = readChain(chainSource, [...path, 'certificate_chain'], problems);
  const key = readKey(keySource, password, [...path, 'private_key'], problems);
  if (chain && key && !chain.checkPrivateKey(key)) {
    problems.error(
      [...path, 'private_key'],
      'the key does not belong to the first certificate of certificate_chain',
      'secret',
    );
  }
}

function checkTrust(
  context: Messages[`${typeof TLS}.CertificateValidationContext`],
  path: Path,
  problems: Problems,
): void {
  readChain(context.trusted_ca, [...path, 'trusted_ca'], problems);
  const crl = read(context.crl, [...path, 'crl'], problems);
  if (!crl) return;
  try {
    tls().createSecureContext({ crl });
  } catch (error) {
    problems.error([...path, 'crl'], `not a valid revocation list in PEM: ${messageOf(error)}`);
  }
}

function checkTicketKeys(ticket: Messages[`${typeof TLS}.TlsSessionTicketKeys`], path: Path, problems: Problems): void {
  ticket.keys?.forEach((source, index) => {
    const at = [...path, 'keys', index];
    const key = read(source, at, problems);
    if (key && key.length !== TICKET_KEY_BYTES) {
      problems.error(at, `a session ticket key has ${TICKET_KEY_BYTES} bytes, found ${key.length}`, 'secret');
    }
  });
}

const TICKET_KEY_BYTES = 80;

function checkSecret(secret: Messages[`${typeof TLS}.GenericSecret`], path: Path, problems: Problems): void {
  read(secret.secret, [...path, 'secret'], problems);
}

function checkPkcs12(source: DataSource, passphrase: string | undefined, path: Path, problems: Problems): void {
  const pfx = read(source, path, problems);
  if (!pfx) return;
  try {
    tls().createSecureContext({ pfx, ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    problems.error(path, `not a valid PKCS #12 file: ${messageOf(error)}`, 'secret');
  }
}

/** Returns the first certificate, if all are valid. */
function readChain(source: DataSource | undefined, path: Path, problems: Problems): X509Certificate | undefined {
  const bytes = read(source, path, problems);
  if (!bytes) return undefined;
  const blocks = bytes.toString('latin1').match(CERTIFICATE) ?? [];
  if (blocks.length === 0) {
    problems.error(path, 'no certificate in PEM (-----BEGIN CERTIFICATE-----)');
    return undefined;
  }
  let first: X509Certificate | undefined;
  for (const [index, block] of blocks.entries()) {
    try {
      const certificate = new X509Certificate(block);
      first ??= certificate;
    } catch (error) {
      problems.error(path, `certificate ${index + 1} of ${blocks.length} is not valid: ${messageOf(error)}`);
      return undefined;
    }
  }
  return first;
}

const CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.*?(?:-----END (?:X509 |TRUSTED )?CERTIFICATE-----|$)/gs;

function readKey(
  source: DataSource | undefined,
  passphrase: string | undefined,
  path: Path,
  problems: Problems,
): KeyObject | undefined {
  const key = read(source, path, problems);
  if (!key) return undefined;
  if (!key.includes('-----BEGIN ')) {
    problems.error(path, 'no key in PEM (-----BEGIN PRIVATE KEY-----)', 'secret');
    return undefined;
  }
  try {
    return createPrivateKey({ key, format: 'pem', ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    const isEncrypted = /passphrase|interrupted|bad decrypt/i.test(messageOf(error));
    const what = isEncrypted ? 'the key is encrypted, and password does not decrypt it' : 'the key is not valid';
    problems.error(path, `${what}: ${messageOf(error)}`, 'secret');
    return undefined;
  }
}

/** Reads the bytes of a data source; undefined if there are none, which has been reported. */
function read(source: DataSource | undefined, path: Path, problems: Problems): Buffer | undefined {
  if (!source) return undefined;
  const { filename, inline_bytes: bytes, inline_string: text, environment_variable: variable } = source;
  let content: Buffer | undefined;
  if (filename !== undefined) content = readFile(filename, [...path, 'filename'], problems);
  else if (variable !== undefined) content = readVariable(variable, [...path, 'environment_variable'], problems);
  else if (bytes !== undefined) content = Buffer.from(bytes, 'base64');
  else if (text !== undefined) content = Buffer.from(text);
  return content;
}

function readFile(name: string, path: Path, problems: Problems): Buffer | undefined {
  try {
    return readRegularFile(name);
  } catch (error) {
    problems.error(path, `unable to read file: ${messageOf(error)}`);
    return undefined;
  }
}

function readVariable(name: string, path: Path, problems: Problems): Buffer | undefined {
  const value = process.env[name];
  if (value === undefined) problems.error(path, `the environment variable ${name} is not set`);
  return value === undefined ? undefined : Buffer.from(value);
}

/** Returns Node's TLS module, which most configurations do without: it is a tenth of the time that they take to load. */
function tls(): typeof import('node:tls') {
  return process.getBuiltinModule('node:tls');
}
