// What rules for peers are about: the names and digests of a certificate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tls/handles.h"

namespace baton {

struct CertificateFacts {
  // A subject alternative name: its GEN_* type, and text or, for addresses, 4 or 16 bytes. Names of other types have their OID and value in
  // `oid` and `text`.
  struct Name {
    int32_t type = 0;
    std::string text;
    std::string oid;
  };

  std::string sha256;           // of the DER form, raw
  std::string publicKeySha256;  // of the SubjectPublicKeyInfo, raw
  std::vector<Name> names;
};

// Returns nullptr for bytes that are not one certificate in DER form.
CertificateHandle readDer(const uint8_t* der, size_t length);
std::string toDer(X509* certificate);
CertificateFacts describe(X509* certificate);

}  // namespace baton
