// A connected socket as a byte stream. Only this class reads, writes, half-closes and closes the descriptor of a connection, and it hides
// how bytes are transferred, so that a socket that is not plain can replace it.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "system/descriptor.h"
#include "transport/pending-queue.h"

namespace baton {

class SocketStream {
 public:
  struct Received {
    ssize_t count;  // bytes; 0 at the peer's FIN; or a negative errno, -EAGAIN without input
    bool emptied;   // after bytes: no input is left, and later input is a new edge for epoll
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
  bool hasBuffered() const { return false; }

  // Returns the number of accepted bytes, or a negative errno; -EAGAIN: none until there is room. Must not be called while bytes are
  // unsent.
  ssize_t write(iovec* ranges, int count, size_t total);
  // Unsent bytes; flush() sends those that the caller adds.
  PendingQueue& pending() { return pending_; }
  const PendingQueue& pending() const { return pending_; }
  // Returns whether unsent bytes wait for room.
  bool hasUnsent() const { return !pending_.empty(); }
  // Writes some unsent bytes. Returns 0 or an errno; EAGAIN: there was no room.
  int flush();
  // Drops unsent bytes of a broken connection.
  void dropUnsent() { pending_.clear(); }
  // Returns the bytes in the kernel that the peer has not acknowledged.
  int unacknowledged() const;

  // The epoll hints after which to retry a read that returned nothing, or a write without room.
  uint32_t readHint() const { return EPOLLIN; }
  uint32_t writeHint() const { return EPOLLOUT; }

  // Half-closes; reading remains possible. Called when nothing is unsent.
  void endSending();

  // Returns whether another process can continue the connection with the descriptor and the pending bytes alone.
  bool isTransferable() const { return !hasBuffered(); }

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
};

}  // namespace baton
