// A connected socket as a byte stream, plain or encrypted. Only this class and its TLS session read, write, half-close and close the
// descriptor of a connection.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "system/descriptor.h"
#include "system/pending-queue.h"
#include "tls/session.h"

namespace baton {

class SocketStream {
 public:
  struct Received {
    ssize_t count;  // bytes; 0 at the peer's end; or a negative errno, -EAGAIN without bytes, -EPROTO after a TLS failure
    bool emptied;   // after bytes and -EAGAIN: no input is left, and later input is a new edge for epoll
  };

  SocketStream() = default;
  // `isLocal`: a Unix socket, whose peer may send descriptors.
  SocketStream(Descriptor fd, bool isLocal) : fd_(std::move(fd)), isLocal_(isLocal) {}

  // Returns false if there is no descriptor: it is closed, or a connect could not begin.
  bool isOpen() const { return static_cast<bool>(fd_); }
  // For epoll, socket options and copies; -1 if there is none.
  int descriptor() const { return fd_.get(); }

  Received read(void* to, size_t length);
  // Reads without consuming. For a connection that has delivered nothing yet.
  ssize_t peek(void* to, size_t length);
  // Reads and discards bytes. Returns a count as read() does.
  ssize_t discard();
  // Returns whether the stream itself buffers bytes for read(), which epoll does not report.
  bool hasBuffered() const { return tls_ != nullptr && tls_->hasBuffered(); }

  // Encrypts all further bytes; those that are still unsent are sent first, unencrypted. Returns false if memory cannot be allocated.
  bool startTls(std::shared_ptr<TlsContext> context, TlsClientOptions options, int32_t connection,
                TlsObserver& observer);
  // nullptr for a plain stream.
  TlsSession* tls() const { return tls_.get(); }
  bool isHandshaking() const { return tls_ != nullptr && tls_->isHandshaking(); }

  // Returns the number of accepted bytes, or a negative errno; -EAGAIN: none until there is room, or the handshake is done. Must not be
  // called while bytes are unsent.
  ssize_t write(iovec* ranges, int count, size_t total, bool isLast = false);
  // Plain unsent bytes; flush() sends those that the caller adds.
  PendingQueue& pending() { return pending_; }
  const PendingQueue& pending() const { return pending_; }
  // Returns whether unsent bytes wait for room.
  bool hasUnsent() const { return !pending_.empty() || (tls_ != nullptr && !tls_->unsent().empty()); }
  uint32_t unsentBytes() const { return pending_.size() + (tls_ == nullptr ? 0 : tls_->unsent().size()); }
  // Writes some unsent bytes. Returns 0 or an errno; EAGAIN: there was no room.
  int flush();
  // Drops plain unsent bytes of a broken connection. A TLS alert stays.
  void dropUnsent() { pending_.clear(); }
  // Returns the bytes in the kernel that the peer has not acknowledged.
  int unacknowledged() const;

  // The epoll hints after which to retry a read that returned nothing, or a write without room.
  uint32_t readHint() const { return EPOLLIN; }
  uint32_t writeHint() const { return EPOLLOUT; }

  // Ends the encrypted stream (close_notify). Returns whether that has added unsent bytes. Called when nothing is unsent.
  bool finish() { return tls_ != nullptr && tls_->finish(); }
  // Half-closes; reading remains possible. Called after finish(), when nothing is unsent.
  void endSending();

  // Returns whether another process can continue the connection with the descriptor and the pending bytes alone.
  bool isTransferable() const { return tls_ == nullptr; }

  // Closes both directions in an orderly way. Aborts if bytes are unsent, because a truncated response must not look complete.
  void close();
  // Closes with RST instead of FIN, if the protocol has it.
  void abort();
  // Closes only this descriptor, without affecting the connection of its copies. The destructor does the same.
  void closeLocally();
  // Transfers the open descriptor to the caller.
  int release() { return fd_.release(); }

 private:
  Descriptor fd_;
  bool isLocal_ = false;
  PendingQueue pending_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace baton
