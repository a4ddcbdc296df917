#include "tls/trust-domains.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls/errors.h"

namespace baton {
namespace {

constexpr std::string_view kScheme = "spiffe://";

// Returns the trust domain of a SPIFFE ID with a path; '' for other texts.
std::string domainOf(std::string_view id) {
  if (id.substr(0, kScheme.size()) != kScheme) return {};
  id.remove_prefix(kScheme.size());
  const size_t end = id.find('/');
  return end == std::string_view::npos ? std::string() : std::string(id.substr(0, end));
}

// Of the first URI. A certificate of a workload has only one.
std::string domainOf(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, TlsFree<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* text = name->d.uniformResourceIdentifier;
    return domainOf(std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                     static_cast<size_t>(ASN1_STRING_length(text))));
  }
  return {};
}

// An authority may not act as a workload, and a certificate without key usage may sign others.
bool isOfWorkload(X509* certificate) {
  if ((X509_get_extension_flags(certificate) & EXFLAG_CA) != 0) return false;
  return (X509_get_key_usage(certificate) & (KU_CRL_SIGN | KU_KEY_CERT_SIGN)) == 0;
}

}  // namespace

bool TrustDomains::read(const std::vector<TlsTrustDomainSettings>& settings, TlsMistake& mistake) {
  for (size_t i = 0; i < settings.size(); ++i) {
    const BioHandle bytes(BIO_new_mem_buf(settings[i].roots.data(), static_cast<int>(settings[i].roots.size())));
    STACK_OF(X509_INFO)* infos = PEM_X509_INFO_read_bio(bytes.get(), nullptr, nullptr, nullptr);
    Domain domain{CertificateStack(sk_X509_new_null()), RevocationStack(sk_X509_CRL_new_null())};
    for (int n = 0; infos != nullptr && n < sk_X509_INFO_num(infos); ++n) {
      X509_INFO* info = sk_X509_INFO_value(infos, n);
      if (info->x509 != nullptr && sk_X509_push(domain.roots.get(), info->x509) > 0) info->x509 = nullptr;
      if (info->crl != nullptr && sk_X509_CRL_push(domain.revocations.get(), info->crl) > 0) info->crl = nullptr;
    }
    const bool isRead = infos != nullptr && sk_X509_num(domain.roots.get()) > 0;
    sk_X509_INFO_pop_free(infos, X509_INFO_free);
    if (!isRead) {
      std::string reasons = takeTlsErrors();
      mistake = {"trustDomains[" + std::to_string(i) + "]",
                 reasons.empty() ? "no certificate in PEM form" : std::move(reasons)};
      return false;
    }
    domains_[settings[i].name] = std::move(domain);
  }
  return true;
}

bool TrustDomains::select(X509_STORE_CTX* store) const {
  X509* leaf = X509_STORE_CTX_get0_cert(store);
  const bool isWorkload = isOfWorkload(leaf);
  const auto found = isWorkload ? domains_.find(domainOf(leaf)) : domains_.end();
  ERR_clear_error();
  if (found == domains_.end()) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    X509_STORE_CTX_set_error_depth(store, isWorkload ? kUnknownDomain : kNoWorkload);
    return false;
  }
  const Domain& domain = found->second;
  X509_STORE_CTX_set0_trusted_stack(store, domain.roots.get());
  if (sk_X509_CRL_num(domain.revocations.get()) == 0) return true;
  X509_STORE_CTX_set0_crls(store, domain.revocations.get());
  X509_STORE_CTX_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return true;
}

void TrustDomains::addNames(STACK_OF(X509_NAME) * to) const {
  for (const auto& [name, domain] : domains_) {
    for (int i = 0; i < sk_X509_num(domain.roots.get()); ++i) {
      const X509_NAME* subject = X509_get_subject_name(sk_X509_value(domain.roots.get(), i));
      bool isKnown = false;
      for (int n = 0; n < sk_X509_NAME_num(to) && !isKnown; ++n)
        isKnown = X509_NAME_cmp(sk_X509_NAME_value(to, n), subject) == 0;
      if (!isKnown) sk_X509_NAME_push(to, X509_NAME_dup(subject));
    }
  }
}

}  // namespace baton
