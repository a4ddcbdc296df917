// Peeks at the first bytes of a connection without consuming them: a later read returns all of them except those that were taken.

#include <algorithm>
#include <cerrno>

#include "transport/transport.h"

namespace baton {

// Each edge shows all bytes received so far. A FIN cannot be seen by peeking while bytes precede it: after a hang-up hint, End is reported
// after the peek that showed the last bytes, unless they have been taken by then.
void Transport::peek(Id id, SocketRecord& connection) {
  if (connection.servedInBatch == batch_.number()) return enqueue(id, connection);
  connection.readable = false;
  if (connection.peekedToEnd) {
    connection.ended = true;
    batch_.add(id, Event::End);
    return;
  }
  const uint32_t most = std::min(batch_.windowLeft(), connection.peekLimit);
  const ssize_t got = connection.stream.peek(batch_.window(), most);
  if (got < 0) {
    if (got != -EAGAIN) reportReset(id, connection, static_cast<int>(-got));
    return;
  }
  if (got == 0) {
    connection.ended = true;
    batch_.add(id, Event::End);
    return;
  }
  batch_.addData(id, static_cast<uint32_t>(got));
  connection.servedInBatch = batch_.number();
  // The window of this batch was too small: bytes that have already arrived cause no further edge.
  const bool isCut = static_cast<uint32_t>(got) == most && most < connection.peekLimit;
  if (!isCut && !connection.hungUp) return;
  connection.peekedToEnd = !isCut;
  connection.readable = true;
  enqueue(id, connection);
}

// Consumes bytes that were shown, and so are available.
void Transport::take(Id id, SocketRecord& connection, uint32_t count) {
  if (connection.peekLimit == 0 || connection.error != 0) return;
  connection.peekLimit = 0;
  if (connection.peekedToEnd) connection.ended = false;  // reported again, after the remaining bytes
  connection.peekedToEnd = false;
  uint8_t taken[1024];
  while (count > 0) {
    const ssize_t got = connection.stream.read(taken, std::min<size_t>(count, sizeof taken)).count;
    if (got <= 0) return fail(id, connection, got < 0 ? static_cast<int>(-got) : ECONNRESET, false);
    count -= static_cast<uint32_t>(got);
  }
  connection.readable = true;
  enqueue(id, connection);
}

}  // namespace baton
