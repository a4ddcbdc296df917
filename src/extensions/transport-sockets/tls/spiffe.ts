// envoy.tls.cert_validator.spiffe: verifies certificates of workloads (X.509-SVID) by the authorities of their trust domain.
//
// src/tls makes the contexts, and the native engine verifies.

import { type NamedExtension, refused } from '../../sdk.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

export const spiffeValidator: NamedExtension = {
  category: 'envoy.tls.cert_validator',
  name: 'envoy.tls.cert_validator.spiffe',
  typeUrls: [`type.googleapis.com/${TLS}.SPIFFECertValidatorConfig`],
  implemented: {
    [`${TLS}.SPIFFECertValidatorConfig`]: { trust_domains: true, trust_bundles: true },
    [`${TLS}.SPIFFECertValidatorConfig.TrustDomain`]: {
      name: true,
      trust_bundle: true,
      workload_trust_domain: refused('filter state selects no trust domains: give each listener or cluster its own'),
    },
  },
};
