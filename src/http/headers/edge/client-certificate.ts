// x-forwarded-client-cert: reports the certificate of a client to the next hop (forward_client_cert_details,
// set_current_client_cert_details). Like Envoy's ConnectionManagerUtility::mutateXfccRequestHeader.
//
// Names in certificates are not quoted or escaped in URI, By and DNS, as in Envoy: what they contain is the responsibility of the
// CA. The JSON form has no such ambiguity.

import { byteText } from '../../../common/text/byte-text.js';
import { headerKey } from '../../../common/text/header-names.js';
import type {
  HttpConnectionManager,
  HttpConnectionManager_SetCurrentClientCertDetails,
} from '../../../config/generated/api.js';
import type { CertificateFacts, ConnectionSecurity } from '../../../io/tls/connection-security.js';
import type { HeaderBlock } from '../header-block.js';

/** The fields of HttpConnectionManager that are read here. */
export type ClientCertificateConfig = Pick<
  HttpConnectionManager,
  'forward_client_cert_details' | 'set_current_client_cert_details'
>;

/** The header's element for one connection, in both forms. Computed on first use. */
interface Details {
  text: string | undefined;
  json: string | undefined;
}

/** There is one for each connection manager and thread. */
export class ClientCertificateRules {
  readonly #forwards: boolean;
  readonly #adds: boolean;
  /** Requests of connections without a client certificate are forwarded as they are, too. */
  readonly #trustsAll: boolean;
  readonly #details: HttpConnectionManager_SetCurrentClientCertDetails;
  readonly #known = new WeakMap<ConnectionSecurity, Details>();

  constructor({ forward_client_cert_details: mode = 'SANITIZE', ...config }: ClientCertificateConfig) {
    this.#trustsAll = mode === 'ALWAYS_FORWARD_ONLY';
    this.#forwards = mode === 'FORWARD_ONLY' || mode === 'APPEND_FORWARD';
    this.#adds = mode === 'APPEND_FORWARD' || mode === 'SANITIZE_SET';
    this.#details = config.set_current_client_cert_details ?? {};
  }

  /** Removes or changes the header of a request. `security`: of the client's connection; undefined without TLS. */
  apply(headers: HeaderBlock, security: ConnectionSecurity | undefined): void {
    if (this.#trustsAll) return;
    const peer = security?.peer;
    if (security === undefined || peer === undefined || !(this.#forwards || this.#adds)) {
      headers.removeId(HEADER.id);
      return;
    }
    if (!this.#adds) return;
    const former = this.#forwards ? (headers.get(HEADER) ?? '') : '';
    headers.set(HEADER, this.#value(former, security, peer));
  }

  #value(former: string, security: ConnectionSecurity, peer: CertificateFacts): string {
    let details = this.#known.get(security);
    if (details === undefined) {
      details = { text: undefined, json: undefined };
      this.#known.set(security, details);
    }
    // A header in JSON is continued in JSON, and text as text.
    const isList = former.startsWith('[') && former.endsWith(']');
    if (isList || (former === '' && this.#details.format === 'JSON')) {
      const json = (details.json ??= byteText(JSON.stringify(jsonDetails(this.#details, security, peer))));
      const head = isList ? former.slice(0, -1) : '[';
      return `${head}${head.trimEnd() === '[' ? '' : ','}${json}]`;
    }
    const text = (details.text ??= byteText(textDetails(this.#details, security, peer)));
    return former === '' ? text : `${former},${text}`;
  }
}

const HEADER = headerKey('x-forwarded-client-cert');

function textDetails(
  { cert, chain, dns, issuer, subject, uri }: HttpConnectionManager_SetCurrentClientCertDetails,
  security: ConnectionSecurity,
  peer: CertificateFacts,
): string {
  const parts = (security.local?.uriSans ?? []).map((by) => `By=${by}`);
  parts.push(`Hash=${peer.sha256}`);
  if (cert) parts.push(`Cert="${peer.urlEncodedPem}"`);
  if (chain) parts.push(`Chain="${security.peerChain.map((each) => each.urlEncodedPem).join('')}"`);
  if (subject) parts.push(`Subject="${peer.subject}"`);
  if (uri) parts.push(...(peer.uriSans.length === 0 ? [''] : peer.uriSans).map((name) => `URI=${name}`));
  if (dns) parts.push(...peer.dnsSans.map((name) => `DNS=${name}`));
  if (issuer) parts.push(`Issuer="${peer.issuer}"`);
  return parts.join(';');
}

function jsonDetails(
  { cert, chain, dns, issuer, subject, uri }: HttpConnectionManager_SetCurrentClientCertDetails,
  security: ConnectionSecurity,
  peer: CertificateFacts,
): Record<string, unknown> {
  const list = (names: readonly string[] | undefined) =>
    names === undefined || names.length === 0 ? undefined : names;
  return {
    by: list(security.local?.uriSans),
    hash: peer.sha256,
    cert: cert ? peer.pem : undefined,
    chain: chain ? security.peerChain.map(({ pem }) => pem) : undefined,
    subject: subject ? peer.subject : undefined,
    uri: uri ? list(peer.uriSans) : undefined,
    dns: dns ? list(peer.dnsSans) : undefined,
    issuer: issuer ? peer.issuer : undefined,
  };
}
