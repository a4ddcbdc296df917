// The beginning and end of connections.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/transport.h"

namespace baton {

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
  SocketStream stream(std::move(fd), remote.family() == AF_UNIX);
  Id id = addConnection(stream, limits);
  if (id < 0 && stream.isOpen()) {
    // If it cannot be added to the epoll set, it fails like a connect that cannot begin.
    error = -id;
    stream.closeLocally();
    id = addConnection(stream, limits);
  }
  if (id < 0) return id;
  SocketRecord& connection = *sockets_.find(id);
  connection.connecting = true;
  connection.bindFailed = bindFailed;
  if (error != 0) fail(id, connection, error, false);
  return id;
}

// Takes over the stream, allocates its ID and, if `watched`, adds it to the epoll set. On failure returns a negative errno and leaves the
// stream to the caller.
Id Transport::addConnection(SocketStream& stream, Limits limits, bool watched) {
  const Id id = sockets_.allocate(releasedInBatch_);
  if (id < 0) return -ENOBUFS;
  const bool polled = watched && stream.isOpen();
  const int error = polled ? epoll_.add(stream.descriptor(), kConnectionInterest, static_cast<uint32_t>(id)) : 0;
  if (error != 0) {
    releaseSlot(id);
    return -error;
  }
  SocketRecord& connection = *sockets_.find(id);
  connection.kind = SocketKind::Connection;
  connection.highWatermark = limits.highWatermark;
  connection.hardLimit = limits.hardLimit;
  connection.receiveLimit = std::max(limits.receiveLimit, kMinShareBytes);
  connection.inEpoll = watched;
  connection.stream = std::move(stream);
  ++connections_;
  return id;
}

// Marks the connection as broken. Reset follows in a batch; with `readFirst`, after the bytes received before.
void Transport::fail(Id id, SocketRecord& connection, int error, bool readFirst) {
  if (connection.error != 0 || connection.dead) return;
  connection.error = error;
  connection.readBeforeReset = readFirst;
  connection.readable = true;
  connection.stream.dropUnsent();
  enqueue(id, connection);
}

void Transport::reportReset(Id id, SocketRecord& connection, int error) {
  // A connect that could not begin has no descriptor.
  const bool atOnce = connection.connecting && !connection.stream.isOpen();
  const ConnectStep step =
      connection.bindFailed ? ConnectStep::Bind : atOnce ? ConnectStep::Connect : ConnectStep::Later;
  connection.error = error;
  connection.dead = true;
  connection.stream.dropUnsent();
  batch_.add(id, Event::Reset, static_cast<uint32_t>(step), static_cast<uint32_t>(error));
}

// The current batch may still have events of the ID, which JavaScript dispatches by slot.
void Transport::releaseSlot(Id id) {
  sockets_.release(id);
  ++releasedInBatch_;
}

// Invalidates the ID, and ends the stream by `end`.
void Transport::release(Id id, SocketRecord& connection, void (SocketStream::*end)()) {
  const bool wasOpen = connection.stream.isOpen();
  if (wasOpen && connection.shared) epoll_.remove(connection.stream.descriptor());
  (connection.stream.*end)();
  --connections_;
  if (connection.endToken != 0 && !connection.notifiesLate) {
    closing_.notifications().push_back({Event::Gone, connection.endToken});
  }
  releaseSlot(id);
  if (wasOpen) retryAccept();
}

}  // namespace baton
