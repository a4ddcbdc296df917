// The trust domains of a context that verifies SPIFFE certificates (X.509-SVID): each has authorities of its own.
#pragma once

#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tls/handles.h"
#include "tls/settings.h"

namespace baton {

class TrustDomains {
 public:
  // X509_V_ERR_APPLICATION_VERIFICATION at these depths: a certificate that cannot be that of a workload, and one of an unknown domain.
  // SVID_REFUSAL_DEPTH of src/tls/peer-rules.ts.
  static constexpr int kNoWorkload = 0;
  static constexpr int kUnknownDomain = 1;

  // Returns false with `mistake` if one cannot be read.
  bool read(const std::vector<TlsTrustDomainSettings>& settings, TlsMistake& mistake);
  bool empty() const { return domains_.empty(); }

  // Prepares the verification of a certificate by the authorities of its domain. Returns false with an error set in `store` if there are
  // none.
  bool select(X509_STORE_CTX* store) const;

  // Adds the subjects of all authorities, each once.
  void addNames(STACK_OF(X509_NAME) * to) const;

 private:
  struct Domain {
    CertificateStack roots;
    RevocationStack revocations;
  };

  // By name.
  std::unordered_map<std::string, Domain> domains_;
};

}  // namespace baton
