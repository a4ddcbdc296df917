#include "tls/client-sessions.h"

#include "tls/context.h"
#include "tls/session.h"

namespace baton {
namespace {

std::string serverNameOf(const SSL* ssl) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? std::string() : std::string(name);
}

// OpenSSL's callback for a new session: 1 takes over the reference.
int keepSession(SSL* ssl, SSL_SESSION* session) {
  TlsSession::of(ssl)->context().clientSessions().add(ssl, session);
  return 1;
}

}  // namespace

void ClientSessions::use(SSL_CTX* context, size_t most) {
  most_ = most;
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keepSession);
}

void ClientSessions::add(const SSL* ssl, SSL_SESSION* session) {
  SessionHandle handle(session);
  Kept added{serverNameOf(ssl), TlsSession::of(ssl)->sessionGroup(), std::move(handle)};
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_front(std::move(added));
  if (kept_.size() > most_) kept_.pop_back();
}

void ClientSessions::offer(SSL* ssl) {
  if (most_ == 0) return;
  const std::string name = serverNameOf(ssl);
  const std::string& group = TlsSession::of(ssl)->sessionGroup();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->serverName != name || kept->group != group) continue;
    SSL_set_session(ssl, kept->session.get());
    if (SSL_SESSION_get_protocol_version(kept->session.get()) == TLS1_3_VERSION) kept_.erase(kept);
    return;
  }
}

}  // namespace baton
