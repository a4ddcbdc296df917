// The batched transport: non-blocking sockets in an epoll set of its own, which the thread's libuv loop polls.
//
// A turn is up to kRounds rounds or kTurnMs, whichever is shorter. A round looks at what was left over from the one before,
// then at what epoll reports, receives into the window, hands JavaScript one batch (more, when a batch or the window fills
// up), and carries out what JavaScript submitted. What a turn leaves over is served after libuv has seen to its own
// handles. The transport decides nothing: it knows sockets, and no protocol above them.
#pragma once

#include <uv.h>

#include <array>
#include <vector>

#include "transport/closing.h"
#include "system/descriptor-limit.h"
#include "system/epoll-set.h"
#include "transport/event-batch.h"
#include "transport/socket-record.h"
#include "system/sockets.h"

namespace baton {

// Whoever handles the batches.
class BatchHandler {
 public:
  enum class Outcome { Done, Threw, Gone };

  // Around the batches of a turn: what JavaScript has put off until later (promises, ticks) is done at its end.
  virtual void beginTurn() = 0;
  virtual void endTurn() = 0;
  // Handles the events [from, count). Gone: the thread is ending, nobody will handle anything again.
  virtual Outcome handle(uint32_t from, uint32_t count) = 0;
  // Reports the exception of the last handle() that threw.
  virtual void reportException() = 0;
  // Reports a mistake in the submissions.
  virtual void reportMistake(const char* what) = 0;
  // The last handle of the transport is closed; it may be destroyed now.
  virtual void closed() = 0;

 protected:
  ~BatchHandler() = default;
};

class Transport {
 public:
  struct Limits {
    uint32_t highWatermark;
    uint32_t hardLimit;
    uint32_t receiveLimit;  // at most this many bytes at once, as far as the share allows
  };
  // How far a connection had come that is taken over.
  struct Adoption {
    Limits limits;
    const uint8_t* pending = nullptr;  // not sent yet
    size_t pendingBytes = 0;
    bool ended = false;     // the peer's FIN has been reported
    bool finAsked = false;  // FIN follows the pending bytes
    bool paused = false;
    bool frozen = false;  // until thaw()
  };
  // What another transport needs to go on with a frozen connection.
  struct Frozen {
    int fd;
    const PendingQueue* pending;
    bool ended;
    bool finAsked;
  };
  struct Counts {
    uint32_t connections;
    uint32_t listeners;
    uint32_t closing;
  };

  // `reserve`: see DescriptorLimit.
  Transport(const Arrays& arrays, Limits accepted, uint32_t reserve, BatchHandler& handler);

  // Starts polling. 0 or errno; after a failure the transport must still be closed.
  int open(uv_loop_t* loop);
  // Closes every descriptor, without events, then the libuv handles; BatchHandler::closed() follows. May be repeated.
  void close();
  bool isOpen() const { return open_; }

  // These three give an id, or a negative errno. A failed connect has an id and reports with Reset.
  Id addListener(int fd, bool contended);
  Id connect(const SocketAddress& remote, const SocketAddress* local, Limits limits);
  Id adopt(int fd, const Adoption& adoption);

  // freezing.cc
  bool freeze(Id id);
  bool thaw(Id id);
  bool frozen(Id id, Frozen& to);
  bool letGo(Id id);

  const Limits& acceptedLimits() const { return acceptedLimits_; }

  void setAccepting(Id id, bool accepting);
  void removeListener(Id id, bool acceptRest);

  // Carries out the submissions in the array. nullptr, or what was wrong with one of them (the others are carried out).
  const char* flush();

  // Of a connection; -1 when the id is stale or has no descriptor.
  int descriptor(Id id);
  uint32_t pendingBytes(Id id);
  Counts counts();
  // Whether somebody waits who could not be accepted: AcceptFailed was told, and nobody was accepted since.
  bool isStarved();

 private:
  static constexpr int kRounds = 8;
  static constexpr double kTurnMs = 5;
  static constexpr int kEpollEvents = 512;
  // What one connection may receive in one round: 64 KiB cost bulk 15 %. One that fills its share again and again, and whose
  // reader is not stopped by a slow peer, gets the large one: what a batch costs in JavaScript, and what it costs to wake both
  // peers, is then spent on eight times as many bytes. What a slow peer does not take has to be held, so for it the share
  // stays small.
  static constexpr uint32_t kShareBytes = 128 * 1024;
  static constexpr uint32_t kLargeShareBytes = 1024 * 1024;
  static constexpr uint8_t kFullShares = 8;
  static constexpr uint32_t kLeastShareBytes = 4 * 1024;  // whatever the connection's limit is
  static constexpr int kAcceptShare = 64;             // connections of one listener in one round
  static constexpr int kContendedAcceptShare = 8;     // where other threads wait at the same socket
  static constexpr uint64_t kRetryAcceptMs = 100;
  static constexpr uint64_t kCloseTickMs = 20;
  static constexpr int kGatherRanges = 64;
  static constexpr int kPendingShift = 16;  // its control word counts in 64 KiB

  // transport.cc: the loop
  void serve();
  void serveReady(double deadline);
  void serveEpoll(int count, double deadline);
  bool deliver();
  void flushOrReport();
  void writePendingSize();
  void tellNews();
  void wakeToTell();
  bool makeRoom() { return batch_.hasRoom() || deliver(); }
  void enqueue(Id id, SocketRecord& socket);
  void wake();
  void sleep();
  SocketRecord* find(Id id, SocketKind kind);
  void closeHandle(uv_handle_t* handle);

  // connections.cc
  Id addConnection(SocketStream& stream, Limits limits, bool watched = true);
  void fail(Id id, SocketRecord& connection, int error, bool readFirst);
  void reportReset(Id id, SocketRecord& connection, int error);
  void releaseSlot(Id id);
  void release(Id id, SocketRecord& connection, void (SocketStream::*end)());

  // readiness.cc
  void look(Id id, SocketRecord& socket);
  void lookAtConnection(Id id, SocketRecord& connection);
  bool finishConnect(Id id, SocketRecord& connection, uint32_t hints);
  void reportPressure(Id id, SocketRecord& connection);
  void receive(Id id, SocketRecord& connection);
  void sendUnsent(Id id, SocketRecord& connection);
  void endSending(SocketRecord& connection);

  // peeking.cc
  void peek(Id id, SocketRecord& connection);
  void take(Id id, SocketRecord& connection, uint32_t count);

  // listeners.cc
  int setInEpoll(Id id, SocketRecord& listener, bool wanted);
  void updateListener(Id id, SocketRecord& listener);
  void acceptSome(Id id, SocketRecord& listener);
  void rest(SocketRecord& listener);
  void acceptFailed(Id id, SocketRecord& listener, int error);
  void retryLater();
  void retryAccept();
  void dropListener(Id id, SocketRecord& listener);

  // submissions.cc
  const char* submit(Op op, Id id, int32_t first, int32_t second);
  int32_t gather(int32_t from, int32_t queued, iovec* ranges, int& count, size_t& total);
  void send(Id id, SocketRecord& connection, iovec* ranges, int count, size_t total);
  void closeInOrder(Id id, SocketRecord& connection, uint32_t flushMs, uint32_t lingerMs);
  void abort(Id id, SocketRecord& connection);
  void startCloseTimer();

  Arrays arrays_;
  Limits acceptedLimits_;
  DescriptorLimit descriptorLimit_;
  BatchHandler& handler_;
  EventBatch batch_;
  EpollSet epoll_;
  SlotTable<SocketRecord> sockets_;
  Closing closing_;
  std::vector<Id> ready_;      // to look at in the next round
  std::vector<Id> attending_;  // being looked at in this one
  std::vector<Id> listeners_;
  std::array<epoll_event, kEpollEvents> epollEvents_;
  uint32_t connections_ = 0;
  uint32_t releasedInBatch_ = 0;  // their slots are not used again before the next one
  uint32_t resting_ = 0;  // listeners that wait for resources
  double now_ = 0;        // CLOCK_MONOTONIC in ms, at the beginning of the turn or the last batch

  uv_poll_t poll_;
  uv_idle_t idle_;    // keeps the loop from sleeping while something is left over
  uv_check_t check_;  // serves it, after libuv has polled everybody
  uv_timer_t retryTimer_;
  uv_timer_t closeTimer_;
  int handles_ = 0;
  bool open_ = false;
  bool serving_ = false;
  bool servedThisIteration_ = false;
  bool awake_ = false;
};

}  // namespace baton
