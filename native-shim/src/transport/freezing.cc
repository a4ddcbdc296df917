// Moves connections from one transport to another, which may be in another process. A connection is removed from the epoll set between
// events and copied, then resumed or closed here; the other transport adopts it in the same state.
//
// All copies of a descriptor share the connection: shutdown() and a close with RST would end it for all of them, so neither is applied to a
// frozen connection.

#include <cerrno>

#include "transport/transport.h"

namespace baton {

bool Transport::freeze(Id id) {
  SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr || connection->frozen || connection->connecting || connection->error != 0) return false;
  if (!connection->stream.isTransferable() || epoll_.remove(connection->stream.descriptor()) != 0) return false;
  connection->inEpoll = false;
  connection->frozen = connection->shared = true;
  return true;
}

bool Transport::thaw(Id id) {
  SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr || !connection->frozen) return false;
  connection->frozen = false;
  endSending(*connection);
  // Adding it reports current readiness, so input that arrived meanwhile is not missed.
  const int error = epoll_.add(connection->stream.descriptor(), kConnectionInterest, static_cast<uint32_t>(id));
  connection->inEpoll = error == 0;
  if (error != 0) fail(id, *connection, error, false);
  // Back pressure may have changed, and submissions may have resumed it.
  enqueue(id, *connection);
  return true;
}

bool Transport::frozen(Id id, Frozen& to) {
  const SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr || !connection->frozen || connection->error != 0) return false;
  const SocketStream& stream = connection->stream;
  to = {stream.descriptor(), &stream.pending(), connection->ended, connection->shutdownAsked};
  return true;
}

bool Transport::releaseFrozen(Id id) {
  SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr || !connection->frozen) return false;
  release(id, *connection, &SocketStream::closeLocally);
  return true;
}

Id Transport::adopt(int fd, const Adoption& adoption) {
  PendingQueue pending;
  const iovec range{const_cast<uint8_t*>(adoption.pending), adoption.pendingBytes};
  if (range.iov_len > 0 && !pending.append(&range, 1, 0, range.iov_len)) return -ENOMEM;
  const int error = prepareAdopted(fd);
  if (error != 0) return -error;
  if (!descriptorLimit_.leavesReserve(fd, now_)) return -EMFILE;
  setNoDelay(fd);
  SocketStream stream(Descriptor(fd), isLocalSocket(fd));
  const Id id = addConnection(stream, adoption.limits, !adoption.frozen);
  if (id < 0) {
    stream.release();  // the caller still owns it
    return id;
  }
  SocketRecord& connection = *sockets_.find(id);
  connection.shared = true;
  connection.stream.pending() = std::move(pending);
  connection.ended = adoption.ended;
  connection.shutdownAsked = adoption.finAsked;
  connection.paused = adoption.paused;
  connection.frozen = adoption.frozen;
  connection.blocked = connection.stream.pending().size() > connection.highWatermark;
  if (!adoption.frozen) endSending(connection);
  return id;
}

}  // namespace baton
