// Sessions of a client context, kept for later connections to the same server name, of the same group.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "tls/handles.h"

namespace baton {

class ClientSessions {
 public:
  // Keeps the newest `most` sessions of the connections of `context`.
  void use(SSL_CTX* context, size_t most);

  // Offers a session to the server that `ssl` names by SNI. A session of TLS 1.3 is used once, so that connections cannot be linked.
  void offer(SSL* ssl);

  void add(const SSL* ssl, SSL_SESSION* session);

 private:
  struct Kept {
    std::string serverName;
    std::string group;
    SessionHandle session;
  };

  std::mutex mutex_;
  std::deque<Kept> kept_;  // the newest first
  size_t most_ = 0;
};

}  // namespace baton
