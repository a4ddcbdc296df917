// A TLS context: certificates, verification and limits of connections. Made once, then shared by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tls/client-sessions.h"
#include "tls/handles.h"
#include "tls/identities.h"
#include "tls/settings.h"
#include "tls/ticket-keys.h"
#include "tls/trust-domains.h"

namespace baton {

class TlsContext {
 public:
  // Returns nullptr with `mistake` for settings that OpenSSL refuses.
  static std::shared_ptr<TlsContext> create(TlsSettings settings, TlsMistake& mistake);
  // Returns a context whose handshakes fail at once: its certificates are not known yet. nullptr if memory cannot be
  // allocated.
  static std::shared_ptr<TlsContext> unready(bool isServer);

  SSL_CTX* ssl() const { return context_.get(); }
  bool isServer() const { return settings_.isServer; }
  bool isReady() const { return isReady_; }
  const TlsSettings& settings() const { return settings_; }
  const TlsIdentities& identities() const { return identities_; }
  const TrustDomains& trustDomains() const { return trustDomains_; }
  ClientSessions& clientSessions() { return clientSessions_; }

  // Replaces the shared ticket keys by keys of this context. Returns false for a length that is not of whole keys.
  bool setTicketKeys(const std::string& bytes);

 private:
  explicit TlsContext(TlsSettings settings) : settings_(std::move(settings)) {}

  bool prepare(TlsMistake& mistake);
  bool setAlgorithms(TlsMistake& mistake);
  bool setVerification(TlsMistake& mistake);
  void setStapling();
  void setSessions();
  int selectAlpn(const unsigned char** to, unsigned char* length, const unsigned char* offered, unsigned offeredLength) const;

  TlsSettings settings_;
  bool isReady_ = true;
  TlsIdentities identities_;
  TrustDomains trustDomains_;
  TicketKeys ticketKeys_;
  ClientSessions clientSessions_;
  ContextHandle context_;  // destroyed first: its callbacks refer to the members above
};

}  // namespace baton
