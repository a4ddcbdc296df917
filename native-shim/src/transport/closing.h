// Connections in ordered close: JavaScript has let go of them, the last bytes have not left yet.
#pragma once

#include <vector>

#include "system/epoll-set.h"
#include "transport/event-batch.h"
#include "transport/slot-table.h"
#include "transport/socket-stream.h"

namespace baton {

class Closing {
 public:
  // Set in an epoll key that names one of these connections.
  static constexpr uint64_t kKeyBit = 1ull << 32;

  explicit Closing(EpollSet& epoll) : epoll_(epoll) {}

  // Takes over a connection that stands in the epoll set. Sends what is unsent, and aborts when the peer takes none of it for
  // `flushMs`; then, with lingerMs > 0, ends the sending direction and waits until the peer ends, at most that long. What
  // arrives is discarded: a peer that is to be read first would not read. With `endToken` its end is noted down, if
  // `tellsLate` only one for want of time.
  void add(SocketStream stream, bool shared, double now, uint32_t flushMs, uint32_t lingerMs, uint32_t endToken,
           bool tellsLate);

  // Answers an epoll event whose key has kKeyBit. True when a descriptor was closed.
  bool serve(uint64_t key, double now);

  // Closes what is past its time. True when a descriptor was closed.
  bool expire(double now);

  // Closes them all now.
  void clear();

  uint32_t size() const { return table_.size(); }

  // How one has ended of which somebody wants to know.
  struct News {
    Event event;  // Gone or Late
    uint32_t token;
    bool flushed = false;  // with Late: only the peer's end was missing
  };
  // Of those that are closed by now; whoever tells of them empties it.
  std::vector<News>& news() { return news_; }

 private:
  struct Record : SlotHeader {
    SocketStream stream;
    double deadline = 0;
    uint32_t flushMs = 0;
    int queued = 0;               // in the kernel, when the deadline was set
    uint32_t leftAtDeadline = 0;  // of the pending bytes, then
    uint32_t lingerMs = 0;
    uint32_t endToken = 0;
    bool tellsLate = false;
    bool flushed = false;  // nothing is unsent, and the sending direction has ended
    bool ended = false;    // the peer's has
    bool shared = false;
  };
  enum class Next { Wait, Close };

  Next flush(Record& record, double now);
  bool movesOn(Record& record, double now);
  Next discard(Id id, Record& record);
  void remove(Id id, Record& record, bool late = false);

  EpollSet& epoll_;
  SlotTable<Record> table_;
  std::vector<News> news_;
};

}  // namespace baton
