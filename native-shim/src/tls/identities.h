// The certificates of a context, and the choice among them for a client.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tls/handles.h"
#include "tls/settings.h"
#include "tls/stapling.h"

namespace baton {

// A certificate chain with its key, read.
struct TlsIdentity {
  CertificateHandle leaf;
  CertificateStack chain;
  KeyHandle key;
  OcspStaple staple;  // of a server
  OcspPolicy ocspPolicy = OcspPolicy::Lenient;
};

class TlsIdentities {
 public:
  // Returns false with `mistake` if one cannot be read, or does not match its key or its OCSP response.
  bool read(const TlsSettings& settings, TlsMistake& mistake);

  // Adds them to a context. Several are chosen from when a client connects.
  bool use(SSL_CTX* context, bool isServer, bool scansAll, TlsMistake& mistake);

  // Returns the only one; nullptr if there are several.
  const TlsIdentity* only() const { return all_.size() == 1 ? &all_.front() : nullptr; }
  // Returns the one that a resumed session with this server name, or nullptr, belongs to: it has presented none.
  const TlsIdentity* ofName(const char* serverName) const;

 private:
  void indexNames();
  void addName(std::string_view name, size_t index);
  int choose(SSL* ssl) const;
  template <typename Select>
  const TlsIdentity* select(const char* serverName, Select best) const;
  const TlsIdentity* best(SSL* ssl, const std::vector<size_t>& among) const;

  std::vector<TlsIdentity> all_;
  // By DNS name in lower case, `*.` included; the order is that of the settings.
  std::unordered_map<std::string, std::vector<size_t>> byName_;
  std::vector<size_t> everyIndex_;
  bool scansAll_ = false;
};

// Reads all certificates of a PEM text; other blocks are skipped. Returns nullptr for unreadable text or text without a certificate.
CertificateStack readCertificates(const std::string& pem);

}  // namespace baton
