// The TLS layer of one connection: turns the bytes of a socket into plain bytes, and back.
//
// OpenSSL reads and writes memory of the calling thread. Between calls a session keeps only what the socket has not taken, input after the
// handshake, and OpenSSL's own state.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tls/context.h"
#include "tls/handles.h"
#include "tls/stapling.h"
#include "system/pending-queue.h"

namespace baton {

// Answers questions of handshakes. Called while a session reads.
class TlsObserver {
 public:
  // Judges the peer's certificate by `rules`. `error`, an X509_V_ERR_* number, and `depth` are the result of the verification of its chain.
  // Returns the number that counts: 0 accepts, and a negative number accepts what is not verified.
  virtual int verdict(int32_t connection, int error, int depth, X509* leaf, const std::string& rules) = 0;

 protected:
  ~TlsObserver() = default;
};

// What one connection of a client asks for.
struct TlsClientOptions {
  std::string serverName;    // SNI; '' sends none
  std::string alpn;          // offered if the context offers none; '' offers none
  bool replacesAlpn = false;  // it is offered in place of what the context offers
  std::string sessionGroup;  // sessions are resumed within one group and server name only
};

class TlsSession {
 public:
  enum class Step { Wait, More, Done, Failed, Ended, Broken };

  // Returns nullptr if memory cannot be allocated. A server ignores `options`. `unsent` is sent first, unencrypted.
  static std::unique_ptr<TlsSession> create(std::shared_ptr<TlsContext> context, TlsClientOptions options, int32_t connection,
                                            TlsObserver& observer, PendingQueue unsent);
  ~TlsSession();

  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  static TlsSession* of(const SSL* ssl) { return static_cast<TlsSession*>(SSL_get_app_data(ssl)); }

  TlsContext& context() { return *context_; }
  SSL* ssl() const { return ssl_.get(); }
  const std::string& sessionGroup() const { return sessionGroup_; }
  bool isHandshaking() const { return !isSecured_ && !hasFailed_; }
  bool isSecured() const { return isSecured_; }
  bool hasFailed() const { return hasFailed_; }
  // OpenSSL's reasons after a failure.
  const std::string& failure() const { return failure_; }

  // Returns the keys of the session in the format of NSS key logs, and forgets them. '' unless the context keeps them.
  std::string takeKeys() { return std::exchange(keys_, {}); }

  // Whether the client has requested an OCSP response.
  bool requestsStaple() const { return requestsStaple_; }
  // What is done about that, as far as the handshake has come.
  TlsStaple staple() const;

  // Continues the handshake with the socket's input. More: it has used its share, and input may be left. Broken: `error` is an errno.
  // Failed: an alert may be unsent.
  Step handshake(int fd, int& error);

  // As SocketStream::read(); -EPROTO after a failure. -EAGAIN without `emptied`: much input held no bytes, and more may be left.
  struct Received {
    ssize_t count;
    bool emptied;
  };
  Received read(int fd, uint8_t* to, size_t length);
  // Returns whether read() can return something without new input of the socket.
  bool hasBuffered() const;

  // Encrypts and sends. Returns the number of bytes taken, of which unsent() may hold some in encrypted form; -EAGAIN before the end of the
  // handshake or while bytes are unsent; or another negative errno. `isLast`: close_notify follows these bytes once all are taken.
  ssize_t write(int fd, const iovec* ranges, int count, bool isLast);
  // Encrypted bytes that the socket has not taken.
  const PendingQueue& unsent() const { return unsent_; }
  // Sends unsent(). Returns 0 when all is sent, or an errno; EAGAIN: some are left.
  int flush(int fd);
  // Adds close_notify to unsent(), once. Returns whether it did.
  bool finish();

  // For OpenSSL's callbacks.
  int verdict(int error, int depth, X509* leaf) {
    return observer_.verdict(connection_, error, depth, leaf, context_->settings().peerRules);
  }
  // Decides for the certificate that the server presents. Returns false if the handshake must fail.
  bool decideStaple(const TlsIdentity& presented);
  static int observeHello(SSL* ssl, int* alert, void*);
  static int sendStaple(SSL* ssl, void*);
  static void keepKey(const SSL* ssl, const char* line);
  static void observeMessage(int isWrite, int version, int contentType, const void* bytes, size_t length, SSL* ssl, void*);

 private:
  class Io;

  TlsSession(std::shared_ptr<TlsContext> context, SslHandle ssl, int32_t connection, TlsObserver& observer)
      : context_(std::move(context)), ssl_(std::move(ssl)), observer_(observer), connection_(connection) {}

  void fail();

  std::shared_ptr<TlsContext> context_;
  SslHandle ssl_;
  TlsObserver& observer_;
  PendingQueue unsent_;
  PendingQueue input_;  // of the socket, not yet read by OpenSSL
  std::string failure_;
  std::string sessionGroup_;
  std::string keys_;
  int32_t connection_;
  int32_t error_ = 0;  // errno of the socket, which the kernel reports once
  const TlsIdentity* presented_ = nullptr;  // of a server whose client has requested an OCSP response
  TlsStaple staple_ = TlsStaple::NotRequested;
  bool requestsStaple_ = false;
  uint8_t keyUpdates_ = 0;  // of the peer, since its last byte of data
  bool isSecured_ = false;
  bool hasFailed_ = false;
  bool hasFinished_ = false;  // close_notify has been added
  bool hasEnded_ = false;     // the peer has sent FIN or close_notify
};

}  // namespace baton
