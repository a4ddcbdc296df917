#include "transport/closing.h"

#include <cerrno>
#include <utility>

namespace baton {
namespace {

constexpr int kDiscardShare = 4;  // reads of one connection per round

}  // namespace

void Closing::add(SocketStream stream, bool shared, double now, uint32_t flushMs, uint32_t lingerMs, uint32_t endToken,
                  bool notifiesLate) {
  const Id id = table_.allocate();
  if (id < 0) {
    const bool isCut = stream.hasUnsent();
    if (endToken != 0 && !notifiesLate) notifications_.push_back({Event::Gone, endToken, isCut});
    if (endToken != 0 && notifiesLate && isCut) notifications_.push_back({Event::Late, endToken, false});
    return stream.abort();
  }
  Record& record = *table_.find(id);
  record.stream = std::move(stream);
  record.shared = shared;
  record.flushMs = flushMs;
  record.lingerMs = lingerMs;
  record.endToken = endToken;
  record.notifiesLate = notifiesLate;
  record.deadline = now + flushMs;
  record.queued = record.stream.unacknowledged();
  record.leftAtDeadline = record.stream.unsentBytes();
  if (!record.stream.hasUnsent() && flush(record, now) == Next::Close) return remove(id, record);
  // Changing the registration reports current readiness, so nothing has to be tried here.
  if (epoll_.change(record.stream.descriptor(), kConnectionInterest, kKeyBit | static_cast<uint32_t>(id)) != 0) {
    remove(id, record, true);
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
    if (record.deadline > now || (!record.flushed && hasProgress(record, now))) return;
    remove(id, record, true);
  });
  return size() < before;
}

void Closing::clear() {
  table_.forEach([this](Id id, Record& record) { remove(id, record); });
}

Closing::Next Closing::flush(Record& record, double now) {
  do {
    while (record.stream.hasUnsent()) {
      const int error = record.stream.flush();
      if (error != 0) return error == EAGAIN ? Next::Wait : Next::Close;
    }
  } while (record.stream.finish());
  if (record.lingerMs == 0 || record.ended) return Next::Close;
  record.stream.endSending();
  record.flushed = true;
  record.deadline = now + record.lingerMs;
  return Next::Wait;
}

// Returns whether a slow peer has made progress since the last check. The bytes that it reads first leave the kernel's queue; EPOLLOUT
// follows only when much of that is free, which may be much later.
bool Closing::hasProgress(Record& record, double now) {
  const int before = std::exchange(record.queued, record.stream.unacknowledged());
  const uint32_t left = record.stream.unsentBytes();
  if (record.queued >= before && left >= record.leftAtDeadline) return false;
  record.leftAtDeadline = left;
  record.deadline = now + record.flushMs;
  return true;
}

Closing::Next Closing::discard(Id id, Record& record) {
  for (int share = 0; share < kDiscardShare; ++share) {
    const ssize_t got = record.stream.discard();
    if (got == 0) {
      record.ended = true;
      return record.flushed ? Next::Close : Next::Wait;
    }
    if (got < 0) return got == -EAGAIN ? Next::Wait : Next::Close;
  }
  // Its share is used up: other sockets are served first, and this one is reported again.
  const int error =
      epoll_.change(record.stream.descriptor(), kConnectionInterest, kKeyBit | static_cast<uint32_t>(id));
  return error == 0 ? Next::Wait : Next::Close;
}

void Closing::remove(Id id, Record& record, bool late) {
  if (record.shared) epoll_.remove(record.stream.descriptor());
  record.stream.close();
  if (record.endToken != 0 && !record.notifiesLate) {
    notifications_.push_back({Event::Gone, record.endToken, late && !record.flushed});
  }
  if (record.endToken != 0 && record.notifiesLate && late) {
    notifications_.push_back({Event::Late, record.endToken, record.flushed});
  }
  table_.release(id);
}

}  // namespace baton
