// Carries out submissions of JavaScript: sends, closes, and connection settings.

#include <algorithm>
#include <cerrno>

#include "transport/transport.h"

namespace baton {
namespace {

constexpr const char* kOutsideMemory = "a SEND names bytes outside of the memory";

}  // namespace

const char* Transport::flush() {
  // A handshake is in OpenSSL's hands; the end of the turn flushes.
  if (observing_) return nullptr;
  const int32_t queued = std::exchange(arrays_.control[kControlSubmissions], 0);
  if (queued < 0 || static_cast<uint32_t>(queued) > arrays_.maxSubmissions) {
    return "control[Submissions] is beyond the capacity of the submissions array";
  }
  const char* mistake = nullptr;
  iovec ranges[kGatherRanges];
  for (int32_t i = 0; open_ && i < queued;) {
    const int32_t* record = arrays_.submissions + static_cast<uint32_t>(i) * kSubmissionStride;
    const auto op = static_cast<Op>(record[0]);
    const Id id = record[1];
    const char* refused = nullptr;
    if (op == Op::Send) {
      int count = 0;
      size_t total = 0;
      const int32_t next = gather(i, queued, ranges, count, total);
      if (next < 0) refused = kOutsideMemory;
      SocketRecord* connection = find(id, SocketKind::Connection);
      i = next < 0 ? -next : next;
      if (connection != nullptr && count > 0) send(id, *connection, ranges, count, total, closesAt(i, queued, id));
    } else {
      refused = submit(op, id, record[2], record[3]);
      ++i;
    }
    if (mistake == nullptr) mistake = refused;
  }
  if (open_) wakeToNotify();
  writePendingSize();
  return mistake;
}

// Collects adjacent SENDs to one connection. Returns the index after the last one, negated if one was left out because its range is outside
// of the memory.
int32_t Transport::gather(int32_t from, int32_t queued, iovec* ranges, int& count, size_t& total) {
  const int32_t* record = arrays_.submissions + static_cast<uint32_t>(from) * kSubmissionStride;
  const Id id = record[1];
  bool refused = false;
  int32_t i = from;
  for (; i < queued && count < kGatherRanges; ++i, record += kSubmissionStride) {
    if (static_cast<Op>(record[0]) != Op::Send || record[1] != id) break;
    // Read once: the array may be shared memory, and the checked values must be the used ones.
    const int32_t offset = __atomic_load_n(&record[2], __ATOMIC_RELAXED);
    const int32_t length = __atomic_load_n(&record[3], __ATOMIC_RELAXED);
    if (offset < 0 || length < 0 || static_cast<size_t>(offset) + static_cast<size_t>(length) > arrays_.memoryBytes) {
      refused = true;
    } else if (length > 0) {
      ranges[count++] = {arrays_.memory + offset, static_cast<size_t>(length)};
      total += static_cast<size_t>(length);
    }
  }
  return refused ? -i : i;
}

// Returns whether the next submission closes the connection.
bool Transport::closesAt(int32_t index, int32_t queued, Id id) const {
  if (index >= queued) return false;
  const int32_t* record = arrays_.submissions + static_cast<uint32_t>(index) * kSubmissionStride;
  return static_cast<Op>(record[0]) == Op::Close && record[1] == id;
}

const char* Transport::submit(Op op, Id id, int32_t first, int32_t second) {
  if (op < Op::Send || op > Op::Take) return "a submission has an unknown op";
  if (first < 0 || second < 0) return "a submission has a negative value";
  SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr) return nullptr;
  switch (op) {
    case Op::Close:
      closeInOrder(id, *connection, static_cast<uint32_t>(first), static_cast<uint32_t>(second));
      return nullptr;
    case Op::Reset:
      abort(id, *connection);
      return nullptr;
    case Op::Shutdown:
      connection->shutdownAsked = true;
      if (!connection->connecting && !connection->frozen) endSending(*connection);
      return nullptr;
    case Op::Pause:
      connection->paused = true;
      connection->fullShares = 0;
      return nullptr;
    case Op::Resume:
      connection->paused = false;
      if (connection->stream.hasBuffered()) connection->readable = true;
      if (connection->readable) enqueue(id, *connection);
      return nullptr;
    case Op::Watermark:
      connection->highWatermark = static_cast<uint32_t>(first);
      connection->hardLimit = static_cast<uint32_t>(second);
      enqueue(id, *connection);
      return nullptr;
    case Op::ReceiveLimit:
      connection->receiveLimit = std::max(static_cast<uint32_t>(first), kMinShareBytes);
      return nullptr;
    case Op::NotifyGone:
    case Op::NotifyLate:
      connection->endToken = static_cast<uint32_t>(first);
      connection->notifiesLate = op == Op::NotifyLate;
      return nullptr;
    case Op::Peek:
      connection->peekLimit = static_cast<uint32_t>(first);
      return nullptr;
    case Op::Take:
      take(id, *connection, static_cast<uint32_t>(first));
      return nullptr;
    case Op::Send:
      break;
  }
  return nullptr;
}

void Transport::send(Id id, SocketRecord& connection, iovec* ranges, int count, size_t total, bool isLast) {
  if (connection.error != 0 || connection.dead) return;  // its end follows or was reported
  if (connection.shutdownAsked) return fail(id, connection, EPIPE, false);
  size_t sent = 0;
  SocketStream& stream = connection.stream;
  if (!stream.hasUnsent() && !connection.connecting && !connection.frozen) {
    const ssize_t taken = stream.write(ranges, count, total, isLast);
    if (taken == static_cast<ssize_t>(total)) return;
    if (taken < 0 && taken != -EAGAIN) return fail(id, connection, static_cast<int>(-taken), true);
    if (taken > 0) sent = static_cast<size_t>(taken);
  }
  const size_t left = total - sent;
  const size_t pending = stream.unsentBytes() + left;
  if (connection.hardLimit != 0 && pending > connection.hardLimit) return fail(id, connection, ENOBUFS, false);
  if (!stream.pending().append(ranges, count, sent, left)) return fail(id, connection, ENOMEM, false);
  if (pending > connection.highWatermark && !connection.blocked) enqueue(id, connection);
}

void Transport::closeInOrder(Id id, SocketRecord& connection, uint32_t flushMs, uint32_t lingerMs) {
  if (connection.frozen) return release(id, connection, &SocketStream::closeLocally);
  const bool pending = connection.stream.hasUnsent();
  // Bytes are lost, so the end must not look orderly. After a TLS failure the alert says that.
  if (connection.stream.tls() != nullptr && connection.stream.tls()->hasFailed()) connection.error = 0;
  if (connection.error != 0 || (pending && flushMs == 0)) return abort(id, connection);
  const bool lingers = lingerMs > 0 && !connection.ended && !connection.connecting;
  if (pending || lingers) {
    closing_.add(std::move(connection.stream), connection.shared, nowMs(CLOCK_MONOTONIC), flushMs, lingerMs,
                 std::exchange(connection.endToken, 0), connection.notifiesLate);
    if (!uv_is_active(reinterpret_cast<uv_handle_t*>(&closeTimer_))) startCloseTimer();
  }
  release(id, connection, &SocketStream::close);
}

void Transport::abort(Id id, SocketRecord& connection) {
  release(id, connection, connection.frozen ? &SocketStream::closeLocally : &SocketStream::abort);
}

void Transport::startCloseTimer() {
  const auto tick = [](uv_timer_t* timer) {
    auto* transport = static_cast<Transport*>(timer->data);
    if (transport->closing_.expire(nowMs(CLOCK_MONOTONIC))) transport->retryAccept();
    transport->wakeToNotify();
    if (transport->closing_.size() == 0) uv_timer_stop(timer);
  };
  uv_timer_start(&closeTimer_, tick, kCloseTickMs, kCloseTickMs);
}

}  // namespace baton
