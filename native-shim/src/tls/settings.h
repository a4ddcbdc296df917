// What a TLS context is made of. TlsContextSettings in src/io/shim.ts documents the members.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton {

// A certificate chain with its private key.
struct TlsIdentitySettings {
  std::string chain;  // PEM, the leaf first
  std::string key;    // PEM
  std::string pkcs12;  // DER; replaces both
  std::string password;
  bool hasPassword = false;
  std::string ocspStaple;  // DER
};

// When a server sends no OCSP response, although the client has requested one: always, if it has none that is valid; not if it has only an
// expired one; never.
enum class OcspPolicy : int32_t { Lenient = 0, Strict = 1, MustStaple = 2 };

// The authorities of one SPIFFE trust domain.
struct TlsTrustDomainSettings {
  std::string name;
  std::string roots;  // PEM; may have revocation lists
};

enum class TlsVerify : int32_t { None = 0, Optional = 1, Required = 2 };

struct TlsSettings {
  bool isServer = false;
  int32_t minVersion = 0;
  int32_t maxVersion = 0;
  int32_t securityLevel = 1;
  std::string ciphers;
  std::string cipherSuites;
  std::string groups;
  std::string signatureAlgorithms;
  std::string alpn;
  bool prefersClientCiphers = false;
  std::vector<TlsIdentitySettings> identities;
  bool scansAllIdentities = false;
  bool requiresServerName = false;
  OcspPolicy ocspPolicy = OcspPolicy::Lenient;

  TlsVerify verify = TlsVerify::None;
  std::string roots;
  std::string crl;
  std::vector<TlsTrustDomainSettings> trustDomains;  // replace both
  int32_t verifyDepth = -1;
  bool checksLeafCrlOnly = false;
  bool allowsExpired = false;
  bool sendsRootNames = true;
  std::string peerRules;

  std::string sessionIdContext;
  bool hasTickets = true;
  bool hasStatefulSessions = true;
  int32_t sessionSeconds = 0;
  int32_t maxClientSessions = 0;
  bool allowsRenegotiation = false;
  bool keepsKeys = false;
};

// Why a context cannot be made.
struct TlsMistake {
  std::string field;  // the member of TlsContextSettings, "identities" with its index
  std::string reason;
};

}  // namespace baton
