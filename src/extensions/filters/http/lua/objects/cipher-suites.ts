// The numbers of cipher suites (IANA's registry) by OpenSSL's names: those that OpenSSL offers for TLS with certificates or keys of its
// default build.

const NUMBERS: Readonly<Record<string, number>> = {
  TLS_AES_128_GCM_SHA256: 0x1301,
  TLS_AES_256_GCM_SHA384: 0x1302,
  TLS_CHACHA20_POLY1305_SHA256: 0x1303,
  TLS_AES_128_CCM_SHA256: 0x1304,
  'ECDHE-ECDSA-AES128-GCM-SHA256': 0xc02b,
  'ECDHE-ECDSA-AES256-GCM-SHA384': 0xc02c,
  'ECDHE-RSA-AES128-GCM-SHA256': 0xc02f,
  'ECDHE-RSA-AES256-GCM-SHA384': 0xc030,
  'ECDHE-ECDSA-CHACHA20-POLY1305': 0xcca9,
  'ECDHE-RSA-CHACHA20-POLY1305': 0xcca8,
  'ECDHE-ECDSA-AES128-SHA': 0xc009,
  'ECDHE-ECDSA-AES256-SHA': 0xc00a,
  'ECDHE-RSA-AES128-SHA': 0xc013,
  'ECDHE-RSA-AES256-SHA': 0xc014,
  'ECDHE-ECDSA-AES128-SHA256': 0xc023,
  'ECDHE-ECDSA-AES256-SHA384': 0xc024,
  'ECDHE-RSA-AES128-SHA256': 0xc027,
  'ECDHE-RSA-AES256-SHA384': 0xc028,
  'AES128-GCM-SHA256': 0x9c,
  'AES256-GCM-SHA384': 0x9d,
  'AES128-SHA': 0x2f,
  'AES256-SHA': 0x35,
  'AES128-SHA256': 0x3c,
  'AES256-SHA256': 0x3d,
  'DHE-RSA-AES128-GCM-SHA256': 0x9e,
  'DHE-RSA-AES256-GCM-SHA384': 0x9f,
  'DHE-RSA-CHACHA20-POLY1305': 0xccaa,
  'DHE-RSA-AES128-SHA': 0x33,
  'DHE-RSA-AES256-SHA': 0x39,
  'DHE-RSA-AES128-SHA256': 0x67,
  'DHE-RSA-AES256-SHA256': 0x6b,
};

/** Returns a number such as `0x1302`; `0xffff` for a suite that is not known, as Envoy does without one. */
export function cipherSuiteId(name: string): string {
  return `0x${(NUMBERS[name] ?? 0xffff).toString(16).padStart(4, '0')}`;
}
