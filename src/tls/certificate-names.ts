// Subject alternative names of a certificate, as the native engine reads them.

import { formatIp } from '../io/addresses/address.js';
import type { CertificateName } from '../io/shim.js';

/** GEN_* of OpenSSL. */
export const enum NameType {
  Other = 0,
  Email = 1,
  Dns = 2,
  Uri = 6,
  Ip = 7,
}

/** Returns a name as text; an IP address in its usual form, '' if it has another length than 4 or 16 bytes. */
export function nameText({ type, value }: CertificateName): string {
  if (type !== NameType.Ip) return Buffer.from(value).toString();
  return value.length === 4 || value.length === 16 ? formatIp(value) : '';
}
