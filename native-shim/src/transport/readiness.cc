// Serves sockets that epoll has reported: finishes connects, sends unsent bytes and receives.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/transport.h"

namespace baton {
namespace {

// Of one connection per round.
constexpr int kMaxReads = 8;
constexpr uint32_t kHangupHints = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

void Transport::serveSocket(Id id, SocketRecord& socket) {
  if (socket.kind == SocketKind::Listener) {
    socket.hints = 0;
    acceptSome(id, socket);
  } else {
    serveConnection(id, socket);
  }
}

// epoll's bits are only hints; the results of recv(), send() and SO_ERROR decide.
void Transport::serveConnection(Id id, SocketRecord& connection) {
  if (connection.frozen) return;
  const uint32_t hints = std::exchange(connection.hints, 0);
  if (connection.dead) return;
  if (connection.error == 0) {
    if (connection.connecting && !finishConnect(id, connection, hints)) return;
    if (hints & (connection.stream.readHint() | kHangupHints)) connection.readable = true;
    if (hints & (kHangupHints | EPOLLPRI)) connection.keepReading = true;
    if (hints & kHangupHints) connection.hungUp = true;
    if (hints & EPOLLERR) connection.errorHint = true;
    if ((hints & connection.stream.writeHint()) && connection.stream.hasUnsent()) sendUnsent(id, connection);
  }
  // A handshake reads even if its owner has paused the connection.
  if (connection.readable && connection.error == 0 && connection.stream.isHandshaking()) return secure(id, connection);
  // Peeked bytes are not delivered before the Reset of a broken connection.
  const bool receives = !connection.paused && !connection.ended && connection.peekLimit == 0;
  if (connection.error == 0 && connection.errorHint && !receives) {
    connection.errorHint = false;
    const int error = takeSocketError(connection.stream.descriptor());
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
  const int error = takeSocketError(connection.stream.descriptor());
  if (error != 0) {
    reportReset(id, connection, error);
    return false;
  }
  connection.connecting = false;
  batch_.add(id, Event::Connected);
  if (connection.stream.tls() != nullptr) {
    sendUnsent(id, connection);
    connection.readable = true;
  }
  endSending(connection);
  return true;
}

void Transport::reportPressure(Id id, SocketRecord& connection) {
  const uint32_t pending = connection.stream.unsentBytes();
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
  SocketStream::Received got;
  int reads = 0;
  do {
    got = connection.stream.read(batch_.window() + total, share - total);
    if (got.count > 0) total += static_cast<uint32_t>(got.count);
    // Input after the stream was emptied is a new edge. But a hang-up that was already hinted at causes no further edge, and urgent data
    // shortens a read.
  } while (got.count > 0 && total < share && ++reads < kMaxReads &&
           (!got.emptied || connection.keepReading || connection.error != 0));

  if (total > 0) {
    batch_.addData(id, total);
    connection.servedInBatch = batch_.number();
  }
  // Many reads of few bytes, or much input without any.
  if (reads == kMaxReads || (got.count == -EAGAIN && !got.emptied)) return enqueue(id, connection);
  if (total == share) {
    if (share >= kShareBytes && connection.fullShares < kFullShares) ++connection.fullShares;
    return enqueue(id, connection);
  }
  connection.readable = false;
  if (got.count > 0) return;
  if (connection.error != 0) return reportReset(id, connection, connection.error);
  if (got.count < 0 && got.count != -EAGAIN) return reportReset(id, connection, static_cast<int>(-got.count));
  if (got.count == 0) {
    connection.ended = true;
    batch_.add(id, Event::End);
  }
  if (connection.errorHint) {
    connection.errorHint = false;
    const int late = takeSocketError(connection.stream.descriptor());
    if (late != 0) reportReset(id, connection, late);
  }
}

// One send is enough: after a short one the kernel reports EPOLLOUT when there is room.
void Transport::sendUnsent(Id id, SocketRecord& connection) {
  const int error = connection.stream.flush();
  if (error == 0) return endSending(connection);
  if (error != EAGAIN) fail(id, connection, error, true);
}

// Sends FIN if requested and nothing is unsent. Not on a broken connection: its pending bytes were dropped, and the stream must not look
// complete.
void Transport::endSending(SocketRecord& connection) {
  if (!connection.shutdownAsked || connection.stream.hasUnsent() || connection.error != 0) return;
  if (connection.stream.isHandshaking()) return;
  if (connection.stream.finish() && connection.stream.flush() != 0) return;
  connection.stream.endSending();
}

}  // namespace baton
