// OCSP responses that a server sends with its certificate (RFC 6066, section 8).
#pragma once

#include <openssl/x509.h>

#include <cstdint>
#include <string>

#include "tls/settings.h"

namespace baton {

// What a handshake does about the client's request of a response. Also the numbers of TlsStaple in src/io/shim.ts.
enum class TlsStaple : int32_t { NotRequested = 0, Sent = 1, Omitted = 2, Failed = 3 };

// A response about one certificate.
struct OcspStaple {
  std::string bytes;  // DER; empty: there is none
  // Seconds since 1970. Without nextUpdate it is 0, and the response counts as expired, as in Envoy.
  int64_t thisUpdate = 0;
  int64_t nextUpdate = 0;
};

// Reads a response, in DER form, about one certificate. Returns false with `reason`.
bool readStaple(const std::string& der, OcspStaple& to, std::string& reason);

// Reads the response about `leaf`, if there is one. Returns false with `reason` for a response that does not fit, and for a missing one that
// the certificate or the policy requires.
bool readStapleOf(X509* leaf, const std::string& der, OcspPolicy policy, OcspStaple& to, std::string& reason);

// Returns whether clients may expect a response with this certificate (RFC 7633).
bool isMustStaple(X509* leaf);

// Decides for a client that has requested a response.
TlsStaple decideStaple(const OcspStaple& staple, OcspPolicy policy);

}  // namespace baton
