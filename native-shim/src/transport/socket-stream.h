// A connected socket as a stream of bytes. Only this class reads, writes, ends and closes the descriptor of a connection. What the
// transport has to know about the way in which bytes travel it asks here, so that a socket which is not plain differs in nothing else.
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
    ssize_t count;  // bytes; 0 at the peer's end; or a negative errno, -EAGAIN when nothing is there
    bool emptied;   // with bytes: nothing else is there, and what arrives later is a new edge for epoll
  };

  SocketStream() = default;
  // `isLocal`: a Unix socket, whose peer may send descriptors.
  SocketStream(Descriptor fd, bool isLocal) : fd_(std::move(fd)), isLocal_(isLocal) {}

  // False when there is no descriptor: it is closed, or a connect could not begin.
  bool isOpen() const { return static_cast<bool>(fd_); }
  // For epoll, options and copies; -1 without one.
  int descriptor() const { return fd_.get(); }

  Received read(void* to, size_t length);
  // Reads, and leaves the bytes where they are. Of a connection that has delivered nothing yet.
  ssize_t peek(void* to, size_t length);
  // Reads bytes that nobody wants. Returns what read() counts.
  ssize_t discard();
  // Whether the stream itself holds bytes that read() would return: epoll does not report those.
  bool hasBuffered() const { return false; }

  // The bytes taken, or a negative errno; -EAGAIN: none, until there is room. Not called while something is unsent, which goes first.
  ssize_t write(iovec* ranges, int count, size_t total);
  // What the caller adds goes out with flush().
  PendingQueue& pending() { return pending_; }
  const PendingQueue& pending() const { return pending_; }
  // Whether something waits for room.
  bool hasUnsent() const { return !pending_.empty(); }
  // Writes some of what is unsent. 0, or an errno; EAGAIN: there was no room.
  int flush();
  // What is unsent stays so: the connection is lost.
  void dropUnsent() { pending_.clear(); }
  // Bytes that the kernel has and the peer has not acknowledged.
  int unacknowledged() const;

  // The epoll hints after which a read that found nothing, or a write that found no room, is worth another attempt.
  uint32_t readHint() const { return EPOLLIN; }
  uint32_t writeHint() const { return EPOLLOUT; }

  // Ends the sending direction; reading goes on. Called when nothing is unsent.
  void endSending();

  // Whether the descriptor and the pending bytes are all that another process needs to continue the connection.
  bool isTransferable() const { return !hasBuffered(); }

  // Ends both directions in order. What is unsent is lost: then it aborts, for a cut-off answer must not look complete.
  void close();
  // Closes with RST instead of FIN, where the protocol has one.
  void abort();
  // Closes this descriptor alone, without a word to the peer: holders of a copy continue the connection. So does the destructor.
  void letGo();
  // Leaves the descriptor open, to the caller.
  int release() { return fd_.release(); }

 private:
  Descriptor fd_;
  bool isLocal_ = false;
  PendingQueue pending_;
};

}  // namespace baton
