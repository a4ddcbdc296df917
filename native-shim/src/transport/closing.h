// Connections in an orderly close: JavaScript has closed them, but their last bytes are not sent yet.
#pragma once

#include <vector>

#include "system/epoll-set.h"
#include "transport/event-batch.h"
#include "transport/slot-table.h"
#include "transport/socket-stream.h"

namespace baton {

class Closing {
 public:
  // Set in the epoll keys of these connections.
  static constexpr uint64_t kKeyBit = 1ull << 32;

  explicit Closing(EpollSet& epoll) : epoll_(epoll) {}

  // Takes over a connection that is in the epoll set. Sends the unsent bytes, and aborts if the peer reads none of them for `flushMs`.
  // Then, with lingerMs > 0, half-closes and waits at most that long for the peer's FIN. Input is discarded: a peer that blocks on writing
  // would not read. With `endToken`, adds a notification of the end, or with `notifiesLate` only of a timeout.
  void add(SocketStream stream, bool shared, double now, uint32_t flushMs, uint32_t lingerMs, uint32_t endToken,
           bool notifiesLate);

  // Handles an epoll event whose key has kKeyBit. Returns whether a descriptor was closed.
  bool serve(uint64_t key, double now);

  // Closes connections that have timed out. Returns whether a descriptor was closed.
  bool expire(double now);

  // Closes all connections immediately.
  void clear();

  uint32_t size() const { return table_.size(); }

  // The end of a connection with a token.
  struct Notification {
    Event event;  // Gone or Late
    uint32_t token;
    bool detail = false;  // Late: only the peer's FIN was missing; Gone: bytes were dropped after a timeout
  };
  // Pending notifications; the caller removes those that it has delivered.
  std::vector<Notification>& notifications() { return notifications_; }

 private:
  struct Record : SlotHeader {
    SocketStream stream;
    double deadline = 0;
    uint32_t flushMs = 0;
    int queued = 0;               // bytes in the kernel when the deadline was set
    uint32_t leftAtDeadline = 0;  // pending bytes when the deadline was set
    uint32_t lingerMs = 0;
    uint32_t endToken = 0;
    bool notifiesLate = false;
    bool flushed = false;  // nothing is unsent, and the sending direction is closed
    bool ended = false;    // the peer has half-closed
    bool shared = false;
  };
  enum class Next { Wait, Close };

  Next flush(Record& record, double now);
  bool hasProgress(Record& record, double now);
  Next discard(Id id, Record& record);
  void remove(Id id, Record& record, bool late = false);

  EpollSet& epoll_;
  SlotTable<Record> table_;
  std::vector<Notification> notifications_;
};

}  // namespace baton
