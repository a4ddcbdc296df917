#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "tls/errors.h"
#include "tls/session.h"

namespace baton {
namespace {

bool refuse(TlsMistake& mistake, const char* field) {
  std::string reasons = takeTlsErrors();
  mistake = {field, reasons.empty() ? "OpenSSL refuses it" : std::move(reasons)};
  return false;
}

// Adds certificates or CRLs in PEM form to a store. Returns their number; -1 for unreadable text.
int addToStore(X509_STORE* store, const std::string& pem, STACK_OF(X509_NAME) * names, bool isCrl) {
  const BioHandle bytes(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  STACK_OF(X509_INFO)* infos = PEM_X509_INFO_read_bio(bytes.get(), nullptr, nullptr, nullptr);
  if (infos == nullptr) return -1;
  int added = 0;
  for (int i = 0; i < sk_X509_INFO_num(infos); ++i) {
    const X509_INFO* info = sk_X509_INFO_value(infos, i);
    if (info->x509 != nullptr && !isCrl) {
      if (X509_STORE_add_cert(store, info->x509) == 1) ++added;
      if (names != nullptr) sk_X509_NAME_push(names, X509_NAME_dup(X509_get_subject_name(info->x509)));
    }
    // Roots may come with their CRLs.
    if (info->crl != nullptr && X509_STORE_add_crl(store, info->crl) == 1 && isCrl) ++added;
  }
  sk_X509_INFO_pop_free(infos, X509_INFO_free);
  return added;
}

int ignoreExpiry(int ok, X509_STORE_CTX* store) {
  if (ok == 1) return 1;
  const int error = X509_STORE_CTX_get_error(store);
  if (error != X509_V_ERR_CERT_HAS_EXPIRED && error != X509_V_ERR_CERT_NOT_YET_VALID) return 0;
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

// OpenSSL's callback for the server name, which is called without one too.
int requireServerName(SSL* ssl, int* alert, void*) {
  if (SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) != nullptr) return SSL_TLSEXT_ERR_OK;
  *alert = SSL_AD_HANDSHAKE_FAILURE;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// OpenSSL's callback, which replaces its own verification.
int verifyPeer(X509_STORE_CTX* store, void* context) {
  const auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* owner = static_cast<const TlsContext*>(context);
  const TlsSettings& settings = owner->settings();
  const TrustDomains& domains = owner->trustDomains();
  int error = X509_V_OK;
  int depth = 0;
  if (!settings.roots.empty() || !domains.empty()) {
    if (settings.allowsExpired) X509_STORE_CTX_set_verify_cb(store, ignoreExpiry);
    if ((!domains.empty() && !domains.select(store)) || X509_verify_cert(store) != 1) {
      error = X509_STORE_CTX_get_error(store);
      if (error == X509_V_OK) error = X509_V_ERR_UNSPECIFIED;
      depth = X509_STORE_CTX_get_error_depth(store);
      ERR_clear_error();
    }
  }
  const bool hasRules = !settings.peerRules.empty();
  if (hasRules) error = TlsSession::of(ssl)->verdict(error, depth, X509_STORE_CTX_get0_cert(store));
  // Sessions keep this result.
  const bool isUnverified = hasRules ? error < 0 : settings.roots.empty() && domains.empty();
  if (isUnverified) error = X509_V_ERR_CERT_UNTRUSTED;
  X509_STORE_CTX_set_error(store, error);
  return isUnverified || error == X509_V_OK ? 1 : 0;
}

}  // namespace

std::shared_ptr<TlsContext> TlsContext::create(TlsSettings settings, TlsMistake& mistake) {
  std::shared_ptr<TlsContext> context(new TlsContext(std::move(settings)));
  ERR_clear_error();
  return context->prepare(mistake) ? context : nullptr;
}

std::shared_ptr<TlsContext> TlsContext::unready(bool isServer) {
  TlsSettings settings;
  settings.isServer = isServer;
  std::shared_ptr<TlsContext> context(new TlsContext(std::move(settings)));
  context->isReady_ = false;
  context->context_.reset(SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()));
  return context->ssl() == nullptr ? nullptr : context;
}

bool TlsContext::setTicketKeys(const std::string& bytes) {
  if (!ticketKeys_.set(bytes)) return false;
  ticketKeys_.use(context_.get());
  return true;
}

bool TlsContext::prepare(TlsMistake& mistake) {
  context_.reset(SSL_CTX_new(settings_.isServer ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* context = context_.get();
  if (context == nullptr) return refuse(mistake, "");
  uint64_t options = SSL_OP_NO_COMPRESSION | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_IGNORE_UNEXPECTED_EOF;
  if (settings_.allowsRenegotiation) {
    options |= SSL_OP_LEGACY_SERVER_CONNECT;
  } else {
    options |= SSL_OP_NO_RENEGOTIATION;
  }
  if (!settings_.prefersClientCiphers) options |= SSL_OP_CIPHER_SERVER_PREFERENCE;
  SSL_CTX_set_options(context, options);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_msg_callback(context, TlsSession::observeMessage);
  if (settings_.keepsKeys) SSL_CTX_set_keylog_callback(context, TlsSession::keepKey);
  if (!setAlgorithms(mistake)) return false;
  if (!identities_.read(settings_, mistake) ||
      !identities_.use(context, settings_.isServer, settings_.scansAllIdentities, mistake)) {
    return false;
  }
  if (!setVerification(mistake)) return false;
  if (settings_.isServer) setStapling();
  setSessions();
  ERR_clear_error();
  return true;
}

bool TlsContext::setAlgorithms(TlsMistake& mistake) {
  SSL_CTX* context = context_.get();
  SSL_CTX_set_security_level(context, settings_.securityLevel);
  if (SSL_CTX_set_min_proto_version(context, settings_.minVersion) != 1) return refuse(mistake, "minVersion");
  if (SSL_CTX_set_max_proto_version(context, settings_.maxVersion) != 1) return refuse(mistake, "maxVersion");
  if (!settings_.ciphers.empty() && SSL_CTX_set_cipher_list(context, settings_.ciphers.c_str()) != 1) {
    return refuse(mistake, "ciphers");
  }
  if (!settings_.cipherSuites.empty() && SSL_CTX_set_ciphersuites(context, settings_.cipherSuites.c_str()) != 1) {
    return refuse(mistake, "cipherSuites");
  }
  if (!settings_.groups.empty() && SSL_CTX_set1_groups_list(context, settings_.groups.c_str()) != 1) {
    return refuse(mistake, "groups");
  }
  if (!settings_.signatureAlgorithms.empty() &&
      (SSL_CTX_set1_sigalgs_list(context, settings_.signatureAlgorithms.c_str()) != 1 ||
       SSL_CTX_set1_client_sigalgs_list(context, settings_.signatureAlgorithms.c_str()) != 1)) {
    return refuse(mistake, "signatureAlgorithms");
  }
  if (settings_.requiresServerName) {
    SSL_CTX_set_tlsext_servername_callback(context, requireServerName);
  }
  if (settings_.alpn.empty()) return true;
  if (settings_.isServer) {
    SSL_CTX_set_alpn_select_cb(
        context,
        [](SSL*, const unsigned char** to, unsigned char* length, const unsigned char* offered, unsigned offeredLength,
           void* self) { return static_cast<const TlsContext*>(self)->selectAlpn(to, length, offered, offeredLength); },
        this);
  } else if (SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(settings_.alpn.data()),
                                     static_cast<unsigned>(settings_.alpn.size())) != 0) {
    return refuse(mistake, "alpn");
  }
  return true;
}

// The server's order decides. Without a common protocol the connection goes on without one.
int TlsContext::selectAlpn(const unsigned char** to, unsigned char* length, const unsigned char* offered,
                           unsigned offeredLength) const {
  unsigned char* selected = nullptr;
  const auto* own = reinterpret_cast<const unsigned char*>(settings_.alpn.data());
  if (SSL_select_next_proto(&selected, length, own, static_cast<unsigned>(settings_.alpn.size()), offered,
                            offeredLength) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *to = selected;
  return SSL_TLSEXT_ERR_OK;
}

bool TlsContext::setVerification(TlsMistake& mistake) {
  SSL_CTX* context = context_.get();
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  if (!settings_.roots.empty()) {
    STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
    const int added = addToStore(store, settings_.roots, names, false);
    // The names tell clients which certificates are accepted.
    if (settings_.isServer && settings_.sendsRootNames && added > 0) {
      SSL_CTX_set_client_CA_list(context, names);
    } else {
      sk_X509_NAME_pop_free(names, X509_NAME_free);
    }
    if (added < 0) return refuse(mistake, "roots");
    if (added == 0) {
      mistake = {"roots", "no certificate in PEM form"};
      return false;
    }
    // An intermediate certificate can be the anchor.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (!settings_.trustDomains.empty()) {
    if (!trustDomains_.read(settings_.trustDomains, mistake)) return false;
    if (settings_.isServer && settings_.sendsRootNames) {
      STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
      trustDomains_.addNames(names);
      SSL_CTX_set_client_CA_list(context, names);
    }
  }
  if (!settings_.crl.empty()) {
    const int added = addToStore(store, settings_.crl, nullptr, true);
    if (added < 0) return refuse(mistake, "crl");
    if (added == 0) {
      mistake = {"crl", "no revocation list in PEM form"};
      return false;
    }
    X509_STORE_set_flags(store,
                         X509_V_FLAG_CRL_CHECK | (settings_.checksLeafCrlOnly ? 0ul : X509_V_FLAG_CRL_CHECK_ALL));
  }
  if (settings_.verifyDepth >= 0) SSL_CTX_set_verify_depth(context, settings_.verifyDepth);
  int mode = SSL_VERIFY_NONE;
  if (settings_.verify != TlsVerify::None) mode = SSL_VERIFY_PEER;
  if (settings_.verify == TlsVerify::Required) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context, mode, nullptr);
  SSL_CTX_set_cert_verify_callback(context, verifyPeer, this);
  return true;
}

void TlsContext::setStapling() {
  SSL_CTX_set_client_hello_cb(context_.get(), TlsSession::observeHello, nullptr);
  SSL_CTX_set_tlsext_status_cb(context_.get(), TlsSession::sendStaple);
}

void TlsContext::setSessions() {
  SSL_CTX* context = context_.get();
  if (!settings_.isServer) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (settings_.maxClientSessions > 0) clientSessions_.use(context, static_cast<size_t>(settings_.maxClientSessions));
    return;
  }
  const std::string& id = settings_.sessionIdContext;
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(id.data()),
                                 static_cast<unsigned>(id.size()));
  if (settings_.sessionSeconds > 0) SSL_CTX_set_timeout(context, settings_.sessionSeconds);
  SSL_CTX_set_session_cache_mode(context, settings_.hasStatefulSessions ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
  if (settings_.hasTickets) {
    TicketKeys::shared().use(context);
    return;
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  // Without tickets TLS 1.3 would send references to sessions that nothing keeps.
  if (!settings_.hasStatefulSessions) SSL_CTX_set_num_tickets(context, 0);
}

}  // namespace baton
