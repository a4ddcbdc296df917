// The batched transport: non-blocking sockets in its own epoll set, which the thread's libuv loop polls.
//
// A turn is up to kRounds rounds or kTurnMs, whichever is shorter. A round serves the sockets left over from the previous one, then those
// that epoll reports, receives into the window, delivers one batch to JavaScript (more if a batch or the window fills up), and carries out
// its submissions. Sockets that a turn leaves over are served after libuv has run its own handles. The transport makes no decisions: it
// knows sockets, and no protocol above them.
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

// The handler of batches.
class BatchHandler {
 public:
  enum class Outcome { Done, Threw, Gone };

  // Called around the batches of a turn. Deferred work of JavaScript (promises, ticks) runs in endTurn().
  virtual void beginTurn() = 0;
  virtual void endTurn() = 0;
  // Handles the events [from, count). Gone: the thread is ending, and no further event can be handled.
  virtual Outcome handle(uint32_t from, uint32_t count) = 0;
  // Reports the exception of the last handle().
  virtual void reportException() = 0;
  // Reports an invalid submission.
  virtual void reportMistake(const char* what) = 0;
  // Called when the last handle of the transport is closed: the transport may be destroyed.
  virtual void closed() = 0;
  // Answers a handshake, within a turn. JavaScript cannot flush meanwhile.
  virtual int verdict(Id id, int error, int depth, X509* leaf, const std::string& rules) = 0;

 protected:
  ~BatchHandler() = default;
};

class Transport final : private TlsObserver {
 public:
  struct Limits {
    uint32_t highWatermark;
    uint32_t hardLimit;
    uint32_t receiveLimit;  // maximum bytes received at once, within the share
  };
  // The state of a connection that is taken over.
  struct Adoption {
    Limits limits;
    const uint8_t* pending = nullptr;  // not sent yet
    size_t pendingBytes = 0;
    bool ended = false;     // the peer's FIN has been reported
    bool finAsked = false;  // FIN follows the pending bytes
    bool paused = false;
    bool frozen = false;  // until thaw()
  };
  // The state of a frozen connection for another transport.
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

  // Starts polling. Returns 0 or errno; after a failure the transport must still be closed.
  int open(uv_loop_t* loop);
  // Closes all descriptors without events, then the libuv handles; BatchHandler::closed() follows. Idempotent.
  void close();
  bool isOpen() const { return open_; }

  // These three return an ID or a negative errno. A failed connect has an ID and reports Reset.
  // `maxAccepted`: connections per round; 0: no limit of its own.
  Id addListener(int fd, bool contended, int maxAccepted);
  Id connect(const SocketAddress& remote, const SocketAddress* local, Limits limits);
  Id adopt(int fd, const Adoption& adoption);

  // securing.cc
  // Encrypts a connection: a client's handshake begins once it is connected, a server's with the bytes that have not been taken. Returns 0
  // or an errno: ENOENT for a stale ID, EALREADY, EBUSY for a frozen connection, ENOMEM.
  int startTls(Id id, std::shared_ptr<TlsContext> context, TlsClientOptions options);
  // nullptr for a stale ID or a plain connection.
  TlsSession* tls(Id id);

  // freezing.cc
  bool freeze(Id id);
  bool thaw(Id id);
  bool frozen(Id id, Frozen& to);
  bool releaseFrozen(Id id);

  const Limits& acceptedLimits() const { return acceptedLimits_; }

  void setAccepting(Id id, bool accepting);
  void removeListener(Id id, bool acceptRest);

  // Carries out the submissions in the array. Returns nullptr, or the error of an invalid one (the others are carried out).
  const char* flush();

  // Returns the descriptor of a connection; -1 for a stale ID or without a descriptor.
  int descriptor(Id id);
  uint32_t pendingBytes(Id id);
  Counts counts();
  // Returns whether a listener has reported AcceptFailed and has not accepted its backlog since.
  bool isStarved();

 private:
  static constexpr int kRounds = 8;
  static constexpr double kTurnMs = 5;
  static constexpr int kEpollEvents = 512;
  // What one connection may receive per round; 64 KiB would cost bulk transfers 15 %. A connection that repeatedly fills its share, and is
  // not paused for a slow reader, gets the large one: it amortizes the costs of a batch in JavaScript and of waking both peers over eight
  // times as many bytes. Input for a slow reader must be buffered, so its share stays small.
  static constexpr uint32_t kShareBytes = 128 * 1024;
  static constexpr uint32_t kLargeShareBytes = 1024 * 1024;
  static constexpr uint8_t kFullShares = 8;
  static constexpr uint32_t kMinShareBytes = 4 * 1024;  // regardless of the connection's limit
  static constexpr int kAcceptShare = 64;             // connections of one listener per round
  static constexpr int kContendedAcceptShare = 8;     // if other threads accept on the same socket
  static constexpr uint64_t kRetryAcceptMs = 100;
  static constexpr uint64_t kCloseTickMs = 20;
  static constexpr int kGatherRanges = 64;
  static constexpr int kPendingShift = 16;  // the control word is in units of 64 KiB

  // transport.cc: the loop
  void serve();
  void serveReady(double deadline);
  void serveEpoll(int count, double deadline);
  bool deliver();
  void flushOrReport();
  void writePendingSize();
  void deliverNotifications();
  void wakeToNotify();
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
  void serveSocket(Id id, SocketRecord& socket);
  void serveConnection(Id id, SocketRecord& connection);
  bool finishConnect(Id id, SocketRecord& connection, uint32_t hints);
  void reportPressure(Id id, SocketRecord& connection);
  void receive(Id id, SocketRecord& connection);
  void sendUnsent(Id id, SocketRecord& connection);
  void endSending(SocketRecord& connection);

  // securing.cc
  void secure(Id id, SocketRecord& connection);
  int verdict(int32_t connection, int error, int depth, X509* leaf, const std::string& rules) override;

  // peeking.cc
  void peek(Id id, SocketRecord& connection);
  void take(Id id, SocketRecord& connection, uint32_t count);

  // listeners.cc
  int setInEpoll(Id id, SocketRecord& listener, bool wanted);
  void updateListener(Id id, SocketRecord& listener);
  void acceptSome(Id id, SocketRecord& listener);
  void suspend(SocketRecord& listener);
  void acceptFailed(Id id, SocketRecord& listener, int error);
  void retryLater();
  void retryAccept();
  void dropListener(Id id, SocketRecord& listener);

  // submissions.cc
  const char* submit(Op op, Id id, int32_t first, int32_t second);
  int32_t gather(int32_t from, int32_t queued, iovec* ranges, int& count, size_t& total);
  bool closesAt(int32_t index, int32_t queued, Id id) const;
  void send(Id id, SocketRecord& connection, iovec* ranges, int count, size_t total, bool isLast);
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
  std::vector<Id> ready_;      // to serve in the next round
  std::vector<Id> current_;  // being served in this one
  std::vector<Id> listeners_;
  std::array<epoll_event, kEpollEvents> epollEvents_;
  uint32_t connections_ = 0;
  uint32_t releasedInBatch_ = 0;  // their slots are not reused before the next batch
  uint32_t suspended_ = 0;  // listeners suspended by a shortage of resources
  double now_ = 0;        // CLOCK_MONOTONIC in ms, at the beginning of the turn or the last batch

  uv_poll_t poll_;
  uv_idle_t idle_;    // keeps the loop from sleeping while sockets are left over
  uv_check_t check_;  // serves them after libuv has polled
  uv_timer_t retryTimer_;
  uv_timer_t closeTimer_;
  int handles_ = 0;
  bool open_ = false;
  bool serving_ = false;
  bool observing_ = false;  // JavaScript answers a handshake
  bool servedThisIteration_ = false;
  bool awake_ = false;
};

}  // namespace baton
