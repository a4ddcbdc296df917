// The batch that is being filled for JavaScript: event records, and the receive window that they point into.
#pragma once

#include <sys/socket.h>
#include <time.h>

#include <cstdint>
#include <cstring>

#include "transport/slot-table.h"

namespace baton {

// The values of src/io/shim.ts, which documents them.
enum class Event : int32_t {
  Accept = 1,
  Data,
  End,
  Reset,
  Connected,
  Blocked,
  Drained,
  AcceptFailed,
  Gone,
  Late,
  Secured,
  HandshakeFailed
};
enum class Op : int32_t {
  Send = 1,
  Close,
  Reset,
  Shutdown,
  Pause,
  Resume,
  Watermark,
  ReceiveLimit,
  NotifyGone,
  NotifyLate,
  Peek,
  Take
};
enum class ConnectStep : uint32_t { Later = 0, Connect, Bind };
constexpr uint32_t kEventStride = 4;
constexpr uint32_t kSubmissionStride = 4;
constexpr uint32_t kControlCursor = 0;
constexpr uint32_t kControlSubmissions = 1;
constexpr uint32_t kControlPending = 2;
constexpr uint32_t kControlAcceptedBy = 8;

// JavaScript's arrays.
struct Arrays {
  uint8_t* memory = nullptr;
  size_t memoryBytes = 0;
  uint32_t receiveBytes = 0;
  int32_t* events = nullptr;
  uint32_t maxEvents = 0;
  int32_t* submissions = nullptr;
  uint32_t maxSubmissions = 0;
  int32_t* control = nullptr;
  double* clock = nullptr;
};

inline double nowMs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

class EventBatch {
 public:
  // Events that serving one socket can produce, and the smallest window worth a recv().
  static constexpr uint32_t kEventReserve = 6;
  static constexpr uint32_t kWindowReserve = 16 * 1024;
  static constexpr uint32_t kAlignment = 64;
  // After this many received bytes the batch is delivered before another socket is served, so that the input is still in the processor's
  // cache.
  static constexpr uint32_t kEnoughBytes = 256 * 1024;

  explicit EventBatch(const Arrays& arrays) : arrays_(arrays) {}

  bool hasRoom() const {
    return count_ + kEventReserve <= arrays_.maxEvents && windowLeft() >= kWindowReserve && used_ < kEnoughBytes;
  }
  uint32_t count() const { return count_; }
  uint32_t number() const { return number_; }

  uint8_t* window() { return arrays_.memory + used_; }
  uint32_t windowLeft() const { return arrays_.receiveBytes - used_; }

  void add(Id id, Event kind, uint32_t offset = 0, uint32_t length = 0) {
    int32_t* record = arrays_.events + count_++ * kEventStride;
    record[0] = id;
    record[1] = static_cast<int32_t>(kind);
    record[2] = static_cast<int32_t>(offset);
    record[3] = static_cast<int32_t>(length);
  }

  // `length` bytes are at window().
  void addData(Id id, uint32_t length) {
    add(id, Event::Data, used_, length);
    take(length);
  }

  void addAccept(Id id, Id listener, const sockaddr_storage& peer, socklen_t length) {
    memcpy(window(), &peer, length);
    arrays_.control[kControlAcceptedBy + count_] = listener;
    add(id, Event::Accept, used_, length);
    take(length);
  }

  // Begins the next batch after this one has been handled (or cannot be).
  void reset() {
    count_ = 0;
    used_ = 0;
    ++number_;
  }

  void writeClock() {
    arrays_.clock[0] = nowMs(CLOCK_MONOTONIC);
    arrays_.clock[1] = nowMs(CLOCK_REALTIME);
  }

 private:
  void take(uint32_t length) {
    const uint32_t aligned = used_ + ((length + kAlignment - 1) & ~(kAlignment - 1));
    used_ = aligned < arrays_.receiveBytes ? aligned : arrays_.receiveBytes;
  }

  Arrays arrays_;
  uint32_t count_ = 0;
  uint32_t used_ = 0;
  uint32_t number_ = 1;
};

}  // namespace baton
