// Connections: connecting, receiving, writing what is pending, and telling how they end.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/transport.h"
#include "transport/wire.h"

namespace baton {
namespace {

constexpr uint32_t kHangupHints = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

Id Transport::connect(const SocketAddress& remote, const SocketAddress* local, Limits limits) {
  SocketResult opened = openConnectSocket(remote);
  Descriptor fd = std::move(opened.fd);
  int error = opened.error;
  if (error == 0 && !descriptorLimit_.leavesReserve(fd.get(), now_)) error = EMFILE;
  bool bindFailed = false;
  if (error == 0 && local != nullptr) {
    error = bindConnecting(fd.get(), *local);
    bindFailed = error != 0;
  }
  if (error == 0) error = startConnect(fd.get(), remote);
  if (error != 0) fd.close();
  Id id = add(fd, SocketKind::Connection, limits);
  if (id < 0 && fd) {
    // Without a place in the epoll set it fails as one does that cannot be begun.
    error = -id;
    fd.close();
    id = add(fd, SocketKind::Connection, limits);
  }
  if (id < 0) return id;
  SocketRecord& connection = *sockets_.find(id);
  connection.isLocal = remote.family() == AF_UNIX;
  connection.connecting = true;
  connection.bindFailed = bindFailed;
  if (error != 0) fail(id, connection, error, false);
  return id;
}

// Takes the descriptor and gives it an id, and a place in the epoll set when it is a connection to be watched. When either fails, the
// answer is a negative errno and the descriptor is not taken.
Id Transport::add(Descriptor& fd, SocketKind kind, Limits limits, bool watched) {
  const Id id = sockets_.allocate(releasedInBatch_);
  if (id < 0) return -ENOBUFS;
  SocketRecord& socket = *sockets_.find(id);
  socket.kind = kind;
  socket.highWatermark = limits.highWatermark;
  socket.hardLimit = limits.hardLimit;
  socket.receiveLimit = std::max(limits.receiveLimit, kLeastShareBytes);
  if (kind == SocketKind::Connection) {
    const int error = fd && watched ? epoll_.add(fd.get(), kConnectionInterest, static_cast<uint32_t>(id)) : 0;
    if (error != 0) {
      releaseSlot(id);
      return -error;
    }
    socket.inEpoll = watched;
    ++connections_;
  }
  socket.fd = std::move(fd);
  return id;
}

void Transport::look(Id id, SocketRecord& socket) {
  if (socket.kind == SocketKind::Listener) {
    socket.hints = 0;
    acceptSome(id, socket);
  } else {
    lookAtConnection(id, socket);
  }
}

// epoll's bits are only hints; what recv(), send() and SO_ERROR answer decides.
void Transport::lookAtConnection(Id id, SocketRecord& connection) {
  if (connection.frozen) return;
  const uint32_t hints = std::exchange(connection.hints, 0);
  if (connection.dead) return;
  if (connection.error == 0) {
    if (connection.connecting && !finishConnect(id, connection, hints)) return;
    if (hints & (EPOLLIN | kHangupHints)) connection.readable = true;
    if (hints & (kHangupHints | EPOLLPRI)) connection.readOn = true;
    if (hints & kHangupHints) connection.hungUp = true;
    if (hints & EPOLLERR) connection.errorHint = true;
    if ((hints & EPOLLOUT) && !connection.pending.empty()) writePending(id, connection);
  }
  // Bytes that are only looked at do not come before the news that the connection broke.
  const bool receives = !connection.paused && !connection.ended && connection.peekLimit == 0;
  if (connection.error == 0 && connection.errorHint && !receives) {
    connection.errorHint = false;
    const int error = takeSocketError(connection.fd.get());
    if (error != 0) return reportReset(id, connection, error);
  }
  const bool readFirst = connection.readBeforeReset && receives;
  if (connection.error != 0 && !readFirst) return reportReset(id, connection, connection.error);
  reportPressure(id, connection);
  if (connection.readable && !connection.paused && !connection.ended) receive(id, connection);
}

bool Transport::finishConnect(Id id, SocketRecord& connection, uint32_t hints) {
  if (!(hints & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
    reportPressure(id, connection);
    return false;
  }
  const int error = takeSocketError(connection.fd.get());
  if (error != 0) {
    reportReset(id, connection, error);
    return false;
  }
  connection.connecting = false;
  batch_.add(id, Event::Connected);
  endSending(connection);
  return true;
}

void Transport::reportPressure(Id id, SocketRecord& connection) {
  const uint32_t pending = connection.pending.size();
  if (!connection.blocked && pending > connection.highWatermark) {
    connection.blocked = true;
    batch_.add(id, Event::Blocked, pending);
  } else if (connection.blocked && pending <= connection.highWatermark / 2) {
    connection.blocked = false;
    batch_.add(id, Event::Drained, pending);
  }
}

void Transport::receive(Id id, SocketRecord& connection) {
  if (connection.peekLimit != 0) return peek(id, connection);
  if (connection.servedInBatch == batch_.number()) return enqueue(id, connection);
  const uint32_t most = connection.fullShares < kFullShares ? kShareBytes : kLargeShareBytes;
  const uint32_t share = std::min({batch_.windowLeft(), most, connection.receiveLimit});
  uint32_t total = 0;
  ssize_t got;
  int error = 0;
  bool isCut = false;
  do {
    uint8_t* const to = batch_.window() + total;
    got = connection.isLocal ? readLocalBytes(connection.fd.get(), to, share - total, isCut)
                             : readBytes(connection.fd.get(), to, share - total);
    if (got < 0) error = errno;
    if (got > 0) total += static_cast<uint32_t>(got);
    // A short read has emptied the socket, and what comes later is a new edge; but a hang-up that was hinted at already
    // comes with no edge of its own, and urgent data and descriptors cut a read short.
  } while (got > 0 && total < share && (connection.readOn || isCut || connection.error != 0));

  if (total > 0) {
    batch_.addData(id, total);
    connection.servedInBatch = batch_.number();
  }
  if (total == share) {
    if (share >= kShareBytes && connection.fullShares < kFullShares) ++connection.fullShares;
    return enqueue(id, connection);
  }
  connection.readable = false;
  if (got > 0) return;
  if (got < 0 && error != EAGAIN) return reportReset(id, connection, connection.error != 0 ? connection.error : error);
  if (connection.error != 0) return reportReset(id, connection, connection.error);
  if (got == 0) {
    connection.ended = true;
    batch_.add(id, Event::End);
  }
  if (connection.errorHint) {
    connection.errorHint = false;
    const int late = takeSocketError(connection.fd.get());
    if (late != 0) reportReset(id, connection, late);
  }
}

// One send is enough: when it falls short the kernel has noted that room is waited for, and EPOLLOUT follows.
void Transport::writePending(Id id, SocketRecord& connection) {
  PendingQueue& pending = connection.pending;
  iovec range{const_cast<uint8_t*>(pending.data()), pending.size()};
  const ssize_t sent = writeBytes(connection.fd.get(), &range, 1, range.iov_len);
  if (sent < 0) {
    if (errno != EAGAIN) fail(id, connection, errno, true);
    return;
  }
  pending.consume(static_cast<uint32_t>(sent));
  endSending(connection);
}

// FIN, where it was asked for and nothing stands before it. Not from a connection that is lost: what was pending has been
// dropped, and must not look complete.
void Transport::endSending(SocketRecord& connection) {
  if (!connection.shutdownAsked || !connection.pending.empty() || connection.error != 0) return;
  shutdown(connection.fd.get(), SHUT_WR);
}

// The connection is lost; Reset follows in a batch, with `readFirst` after what was received before.
void Transport::fail(Id id, SocketRecord& connection, int error, bool readFirst) {
  if (connection.error != 0 || connection.dead) return;
  connection.error = error;
  connection.readBeforeReset = readFirst;
  connection.readable = true;
  connection.pending.clear();
  enqueue(id, connection);
}

void Transport::reportReset(Id id, SocketRecord& connection, int error) {
  // A connect that cannot begin leaves no descriptor.
  const bool atOnce = connection.connecting && !connection.fd;
  const ConnectStep step =
      connection.bindFailed ? ConnectStep::Bind : atOnce ? ConnectStep::Connect : ConnectStep::Later;
  connection.error = error;
  connection.dead = true;
  connection.pending.clear();
  batch_.add(id, Event::Reset, static_cast<uint32_t>(step), static_cast<uint32_t>(error));
}

// The batch that is being handled may go on to tell of the id, and whoever reads it goes by the slot.
void Transport::releaseSlot(Id id) {
  sockets_.release(id);
  ++releasedInBatch_;
}

// The id dies. With the descriptor still in the record, the descriptor is closed too.
void Transport::release(Id id, SocketRecord& socket) {
  const bool hadDescriptor = static_cast<bool>(socket.fd);
  if (socket.shared && hadDescriptor) epoll_.remove(socket.fd.get());
  if (socket.kind == SocketKind::Connection) --connections_;
  if (socket.endToken != 0 && !socket.tellsLate) closing_.news().push_back({Event::Gone, socket.endToken});
  releaseSlot(id);
  if (hadDescriptor) retryAccept();
}

}  // namespace baton
