#include "tls/identities.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "tls/errors.h"
#include "tls/session.h"

namespace baton {
namespace {

// Gives the password to OpenSSL; without one, OpenSSL must not ask the terminal.
int answerPassword(char* to, int room, int, void* settings) {
  const auto* identity = static_cast<const TlsIdentitySettings*>(settings);
  const int length = static_cast<int>(identity->password.size());
  if (!identity->hasPassword || length > room) return -1;
  identity->password.copy(to, static_cast<size_t>(length));
  return length;
}

BioHandle memoryBio(const std::string& bytes) {
  return BioHandle(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string reasonOr(const char* otherwise) {
  const std::string reasons = takeTlsErrors();
  return reasons.empty() ? otherwise : reasons;
}

bool readPem(const TlsIdentitySettings& settings, TlsIdentity& to, std::string& reason) {
  CertificateStack all = readCertificates(settings.chain);
  if (all == nullptr) {
    reason = "certificate_chain: " + reasonOr("no certificate in PEM form");
    return false;
  }
  to.leaf.reset(sk_X509_shift(all.get()));
  to.chain = std::move(all);
  const BioHandle key = memoryBio(settings.key);
  to.key.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, answerPassword, const_cast<TlsIdentitySettings*>(&settings)));
  if (to.key == nullptr) reason = "private_key: " + reasonOr("no private key in PEM form");
  return to.key != nullptr;
}

bool readPkcs12(const TlsIdentitySettings& settings, TlsIdentity& to, std::string& reason) {
  const BioHandle bytes = memoryBio(settings.pkcs12);
  const std::unique_ptr<PKCS12, TlsFree<PKCS12_free>> parsed(d2i_PKCS12_bio(bytes.get(), nullptr));
  EVP_PKEY* key = nullptr;
  X509* leaf = nullptr;
  STACK_OF(X509)* chain = nullptr;
  const char* password = settings.hasPassword ? settings.password.c_str() : nullptr;
  if (parsed == nullptr || PKCS12_parse(parsed.get(), password, &key, &leaf, &chain) != 1) {
    reason = "pkcs12: " + reasonOr("not in PKCS#12 form");
    return false;
  }
  to.key.reset(key);
  to.leaf.reset(leaf);
  to.chain.reset(chain != nullptr ? chain : sk_X509_new_null());
  if (key != nullptr && leaf != nullptr) return true;
  reason = key == nullptr ? "pkcs12: it holds no private key" : "pkcs12: it holds no certificate of its key";
  return false;
}

// Returns whether both sides have a cipher suite that authenticates with keys of this kind, which suites of TLS 1.3 do with any.
bool hasCipherFor(SSL* ssl, int authentication) {
  if (SSL_version(ssl) >= TLS1_3_VERSION) return true;
  const STACK_OF(SSL_CIPHER)* own = SSL_get_ciphers(ssl);
  const STACK_OF(SSL_CIPHER)* offered = SSL_get_client_ciphers(ssl);
  for (int i = 0; i < sk_SSL_CIPHER_num(offered); ++i) {
    const SSL_CIPHER* cipher = sk_SSL_CIPHER_value(offered, i);
    if (SSL_CIPHER_get_auth_nid(cipher) != authentication) continue;
    for (int j = 0; j < sk_SSL_CIPHER_num(own); ++j) {
      if (sk_SSL_CIPHER_value(own, j) == cipher) return true;
    }
  }
  return false;
}

bool readOcsp(const TlsIdentitySettings& settings, OcspPolicy policy, TlsIdentity& to, std::string& reason) {
  to.ocspPolicy = isMustStaple(to.leaf.get()) ? OcspPolicy::MustStaple : policy;
  if (readStapleOf(to.leaf.get(), settings.ocspStaple, policy, to.staple, reason)) return true;
  reason = "ocsp_staple: " + reason;
  return false;
}

std::string lowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return lower;
}

std::string_view textOf(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)), static_cast<size_t>(ASN1_STRING_length(string))};
}

}  // namespace

CertificateStack readCertificates(const std::string& pem) {
  const BioHandle bytes = memoryBio(pem);
  CertificateStack found(sk_X509_new_null());
  if (bytes == nullptr || found == nullptr) return nullptr;
  for (;;) {
    X509* certificate = PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr);
    if (certificate == nullptr) break;
    sk_X509_push(found.get(), certificate);
  }
  const unsigned long last = ERR_peek_last_error();
  if (ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE && sk_X509_num(found.get()) > 0) {
    ERR_clear_error();
    return found;
  }
  return nullptr;
}

bool TlsIdentities::read(const TlsSettings& settings, TlsMistake& mistake) {
  for (const TlsIdentitySettings& each : settings.identities) {
    TlsIdentity identity;
    std::string reason;
    bool isRead = each.pkcs12.empty() ? readPem(each, identity, reason) : readPkcs12(each, identity, reason);
    if (isRead && X509_check_private_key(identity.leaf.get(), identity.key.get()) != 1) {
      reason = "private_key: it is not the key of the certificate: " + reasonOr("key values mismatch");
      isRead = false;
    }
    if (isRead && settings.isServer) isRead = readOcsp(each, settings.ocspPolicy, identity, reason);
    if (!isRead) {
      mistake = {"identities[" + std::to_string(all_.size()) + "]", reason};
      return false;
    }
    everyIndex_.push_back(all_.size());
    all_.push_back(std::move(identity));
  }
  return true;
}

bool TlsIdentities::use(SSL_CTX* context, bool isServer, bool scansAll, TlsMistake& mistake) {
  scansAll_ = scansAll;
  for (size_t i = 0; i < all_.size(); ++i) {
    const TlsIdentity& each = all_[i];
    // Also checks that the key is strong enough for the security level. Several are chosen from by choose().
    if (SSL_CTX_use_cert_and_key(context, each.leaf.get(), each.key.get(), each.chain.get(), 1) != 1) {
      mistake = {"identities[" + std::to_string(i) + "]", "certificate_chain: " + reasonOr("it cannot be used")};
      return false;
    }
  }
  if (all_.size() < 2 || !isServer) return true;
  indexNames();
  SSL_CTX_set_cert_cb(
      context, [](SSL* ssl, void* self) { return static_cast<const TlsIdentities*>(self)->choose(ssl); }, this);
  return true;
}

// A certificate without DNS names is known by its common name.
void TlsIdentities::indexNames() {
  for (size_t i = 0; i < all_.size(); ++i) {
    X509* leaf = all_[i].leaf.get();
    const std::unique_ptr<GENERAL_NAMES, TlsFree<GENERAL_NAMES_free>> names(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, nullptr, nullptr)));
    bool hasDns = false;
    for (int n = 0; names != nullptr && n < sk_GENERAL_NAME_num(names.get()); ++n) {
      const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), n);
      if (name->type != GEN_DNS) continue;
      hasDns = true;
      addName(textOf(name->d.dNSName), i);
    }
    if (hasDns) continue;
    const X509_NAME* subject = X509_get_subject_name(leaf);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0) addName(textOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))), i);
  }
}

void TlsIdentities::addName(std::string_view name, size_t index) { byName_[lowerCase(name)].push_back(index); }

// Returns the first ECDSA identity that the client can verify, otherwise the first of another kind, otherwise one with a key that the client can
// use, whatever its issuers sign with; nullptr if there is none. Those whose OCSP response may not be left out are skipped without one.
const TlsIdentity* TlsIdentities::best(SSL* ssl, const std::vector<size_t>& among) const {
  const bool isRequested = TlsSession::of(ssl)->requestsStaple();
  const TlsIdentity* other = nullptr;
  const TlsIdentity* usable = nullptr;
  for (const size_t index : among) {
    const TlsIdentity& each = all_[index];
    const bool isEc = EVP_PKEY_get_base_id(each.key.get()) == EVP_PKEY_EC;
    if (!isEc && other != nullptr) continue;
    if (isRequested && decideStaple(each.staple, each.ocspPolicy) == TlsStaple::Failed) continue;
    const int flags = SSL_check_chain(ssl, each.leaf.get(), each.key.get(), each.chain.get());
    if (!hasCipherFor(ssl, isEc ? NID_auth_ecdsa : NID_auth_rsa)) continue;
    constexpr int kUsable = CERT_PKEY_SIGN | CERT_PKEY_EE_PARAM;
    if (usable == nullptr && (flags & kUsable) == kUsable) usable = &each;
    if ((flags & CERT_PKEY_VALID) == 0) continue;
    if (isEc) return &each;
    other = &each;
  }
  return other == nullptr ? usable : other;
}

// `best`: chooses among those of one name.
template <typename Select>
const TlsIdentity* TlsIdentities::select(const char* serverName, Select best) const {
  const TlsIdentity* chosen = nullptr;
  if (serverName != nullptr) {
    const std::string name = lowerCase(serverName);
    auto found = byName_.find(name);
    if (found != byName_.end()) chosen = best(found->second);
    const size_t dot = name.find('.');
    if (chosen == nullptr && dot != std::string::npos) {
      found = byName_.find("*" + name.substr(dot));
      if (found != byName_.end()) chosen = best(found->second);
    }
  }
  if (chosen == nullptr && (serverName == nullptr || scansAll_)) chosen = best(everyIndex_);
  return chosen == nullptr ? &all_.front() : chosen;
}

const TlsIdentity* TlsIdentities::ofName(const char* serverName) const {
  if (all_.empty()) return nullptr;
  return select(serverName, [this](const std::vector<size_t>& among) { return &all_[among.front()]; });
}

// OpenSSL's callback: 1 continues the handshake, 0 fails it.
int TlsIdentities::choose(SSL* ssl) const {
  const char* sent = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const TlsIdentity* chosen = select(sent, [&](const std::vector<size_t>& among) { return best(ssl, among); });
  ERR_clear_error();
  // What the context offers must not be chosen from.
  SSL_certs_clear(ssl);
  // Without a certificate OpenSSL sends the same alert as for the only certificate.
  if (!TlsSession::of(ssl)->decideStaple(*chosen)) return 1;
  return SSL_use_cert_and_key(ssl, chosen->leaf.get(), chosen->key.get(), chosen->chain.get(), 1);
}

}  // namespace baton
