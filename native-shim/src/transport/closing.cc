#include "transport/closing.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <utility>

#include "transport/wire.h"

namespace baton {
namespace {

// Bytes that the kernel has and the peer has not acknowledged.
int queuedBytes(const Descriptor& fd) {
  int queued = 0;
  ioctl(fd.get(), SIOCOUTQ, &queued);
  return queued;
}

}  // namespace

void Closing::add(Descriptor fd, PendingQueue pending, bool shared, double now, uint32_t flushMs, uint32_t lingerMs,
                  uint32_t endToken, bool tellsLate) {
  const Id id = table_.allocate();
  if (id < 0) {
    if (endToken != 0 && !tellsLate) news_.push_back({Event::Gone, endToken});
    return fd.abort();
  }
  Record& record = *table_.find(id);
  record.fd = std::move(fd);
  record.pending = std::move(pending);
  record.shared = shared;
  record.flushMs = flushMs;
  record.lingerMs = lingerMs;
  record.endToken = endToken;
  record.tellsLate = tellsLate;
  record.deadline = now + flushMs;
  record.queued = queuedBytes(record.fd);
  record.leftAtDeadline = record.pending.size();
  if (record.pending.empty() && flush(record, now) == Next::Close) return remove(id, record);
  // Changing the registration reports what is ready now, so nothing has to be tried here.
  if (epoll_.change(record.fd.get(), kConnectionInterest, kKeyBit | static_cast<uint32_t>(id)) != 0) {
    remove(id, record);
  }
}

bool Closing::serve(uint64_t key, double now) {
  const Id id = static_cast<Id>(key & ~kKeyBit);
  Record* record = table_.find(id);
  if (record == nullptr) return false;
  Next next = record->flushed ? Next::Wait : flush(*record, now);
  if (next == Next::Wait && !record->ended) next = discard(id, *record);
  if (next == Next::Wait) return false;
  remove(id, *record);
  return true;
}

bool Closing::expire(double now) {
  const uint32_t before = size();
  table_.forEach([this, now](Id id, Record& record) {
    if (record.deadline > now || (!record.flushed && movesOn(record, now))) return;
    remove(id, record, true);
  });
  return size() < before;
}

void Closing::clear() {
  table_.forEach([this](Id id, Record& record) { remove(id, record); });
}

Closing::Next Closing::flush(Record& record, double now) {
  while (!record.pending.empty()) {
    iovec range{const_cast<uint8_t*>(record.pending.data()), record.pending.size()};
    const ssize_t sent = writeBytes(record.fd.get(), &range, 1, range.iov_len);
    if (sent < 0) return errno == EAGAIN ? Next::Wait : Next::Close;
    record.pending.consume(static_cast<uint32_t>(sent));
  }
  if (record.lingerMs == 0 || record.ended) return Next::Close;
  shutdown(record.fd.get(), SHUT_WR);
  record.flushed = true;
  record.deadline = now + record.lingerMs;
  return Next::Wait;
}

// A slow peer is not a dead one. What it takes leaves the kernel's queue first: EPOLLOUT comes when much of that is free,
// which may be a long time later.
bool Closing::movesOn(Record& record, double now) {
  const int before = std::exchange(record.queued, queuedBytes(record.fd));
  if (record.queued >= before && record.pending.size() >= record.leftAtDeadline) return false;
  record.leftAtDeadline = record.pending.size();
  record.deadline = now + record.flushMs;
  return true;
}

Closing::Next Closing::discard(Id id, Record& record) {
  // For TCP, MSG_TRUNC drops the bytes without copying them.
  static thread_local uint8_t scratch[64 * 1024];
  for (int share = 0; share < 4; ++share) {
    const ssize_t got = recv(record.fd.get(), scratch, sizeof scratch, MSG_DONTWAIT | MSG_TRUNC);
    if (got == 0) {
      record.ended = true;
      return record.flushed ? Next::Close : Next::Wait;
    }
    if (got < 0) return errno == EAGAIN || errno == EINTR ? Next::Wait : Next::Close;
  }
  // More than its share: let the others go first, and be reported again.
  return epoll_.change(record.fd.get(), kConnectionInterest, kKeyBit | static_cast<uint32_t>(id)) == 0 ? Next::Wait
                                                                                                       : Next::Close;
}

void Closing::remove(Id id, Record& record, bool late) {
  if (record.shared) epoll_.remove(record.fd.get());
  // A cut-off answer must not look like a complete one.
  if (!record.pending.empty()) record.fd.abort();
  if (record.endToken != 0 && !record.tellsLate) news_.push_back({Event::Gone, record.endToken});
  if (record.endToken != 0 && record.tellsLate && late) news_.push_back({Event::Late, record.endToken, record.flushed});
  table_.release(id);
}

}  // namespace baton
