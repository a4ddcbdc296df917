// Owners of OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace baton {

template <auto freeObject>
struct TlsFree {
  template <typename T>
  void operator()(T* object) const {
    freeObject(object);
  }
};

inline void freeCertificates(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }

inline void freeRevocations(STACK_OF(X509_CRL) * lists) { sk_X509_CRL_pop_free(lists, X509_CRL_free); }

using BioHandle = std::unique_ptr<BIO, TlsFree<BIO_free_all>>;
using CertificateHandle = std::unique_ptr<X509, TlsFree<X509_free>>;
using CertificateStack = std::unique_ptr<STACK_OF(X509), TlsFree<freeCertificates>>;
using ContextHandle = std::unique_ptr<SSL_CTX, TlsFree<SSL_CTX_free>>;
using RevocationStack = std::unique_ptr<STACK_OF(X509_CRL), TlsFree<freeRevocations>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, TlsFree<EVP_PKEY_free>>;
using SessionHandle = std::unique_ptr<SSL_SESSION, TlsFree<SSL_SESSION_free>>;
using SslHandle = std::unique_ptr<SSL, TlsFree<SSL_free>>;

}  // namespace baton
