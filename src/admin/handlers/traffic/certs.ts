// GET /certs: the certificates loaded by TLS contexts of listeners and clusters (envoy.admin.v3.Certificates).

import type { AdminHandler } from '../../admin-handler.js';
import type { CertificateView, TlsContextView } from '../../admin-services.js';
import { JSON_TYPE, type JsonObject, prettyJson } from '../../json.js';

const DAY_MS = 24 * 3600 * 1000;

export const certs: AdminHandler = {
  path: '/certs',
  mutates: false,
  help: 'print certs on machine',
  parameters: [],
  handle(_request, services) {
    const now = Date.now();
    const certificates = Array.from(services.tlsContexts(), (context) => contextJson(context, now));
    return { contentType: JSON_TYPE, body: `${prettyJson({ certificates })}\n` };
  },
};

/** Unlike in other answers, empty lists are printed. */
function contextJson({ caCertificates, chain }: TlsContextView, now: number): JsonObject {
  return {
    ca_cert: caCertificates.map((certificate) => certificateJson(certificate, now)),
    cert_chain: chain.map((certificate) => certificateJson(certificate, now)),
  };
}

function certificateJson(certificate: CertificateView, now: number): JsonObject {
  const { path, serialNumber, subjectAltNames, validFrom, expiration, ocsp } = certificate;
  return {
    path,
    serial_number: serialNumber.toLowerCase(),
    subject_alt_names: subjectAltNames,
    // An expired certificate has 0 days left.
    days_until_expiration: String(Math.max(0, Math.floor((expiration.getTime() - now) / DAY_MS))),
    valid_from: timestamp(validFrom),
    expiration_time: timestamp(expiration),
    ocsp_details: ocsp && {
      valid_from: timestamp(ocsp.validFrom),
      expiration: ocsp.expiration && timestamp(ocsp.expiration),
    },
  };
}

/** In proto JSON, whole seconds have no fraction. */
function timestamp(date: Date): string {
  return date.toISOString().replace('.000Z', 'Z');
}
