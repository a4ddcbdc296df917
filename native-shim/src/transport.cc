#include "transport.h"

#include <algorithm>

#include "wire.h"

namespace baton {
namespace {

constexpr uint32_t kErrorHints = EPOLLERR;
constexpr uint32_t kHangupHints = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

Transport* owner(const void* handle) {
  return static_cast<Transport*>(static_cast<const uv_handle_t*>(handle)->data);
}

}  // namespace

Transport::Transport(const Arrays& arrays, Limits accepted, BatchHandler& handler)
    : arrays_(arrays), acceptedLimits_(accepted), handler_(handler), batch_(arrays), closing_(epoll_) {}

int Transport::open(uv_loop_t* loop) {
  if (epoll_.fd() < 0) return EMFILE;
  loop_ = loop;
  const int error = uv_poll_init(loop, &poll_, epoll_.fd());
  if (error != 0) return -error;
  uv_idle_init(loop, &idle_);
  uv_check_init(loop, &check_);
  uv_timer_init(loop, &retryTimer_);
  uv_timer_init(loop, &closeTimer_);
  poll_.data = idle_.data = check_.data = retryTimer_.data = closeTimer_.data = this;
  handles_ = 5;
  open_ = true;
  // Polling alone keeps the thread alive; nothing else of the transport should.
  for (void* handle : {static_cast<void*>(&idle_), static_cast<void*>(&check_), static_cast<void*>(&retryTimer_),
                       static_cast<void*>(&closeTimer_)}) {
    uv_unref(static_cast<uv_handle_t*>(handle));
  }
  return -uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) { owner(poll)->serve(); });
}

void Transport::close() {
  if (!open_) return;
  open_ = false;
  // The records stay until the handles are closed: this may be called from within a batch.
  sockets_.forEach([this](Id, SocketRecord& socket) {
    if (socket.shared && socket.fd) epoll_.remove(socket.fd.get());
    socket.fd.close();
    socket.pending.clear();
  });
  closing_.clear();
  closeHandle(reinterpret_cast<uv_handle_t*>(&poll_));
  closeHandle(reinterpret_cast<uv_handle_t*>(&idle_));
  closeHandle(reinterpret_cast<uv_handle_t*>(&check_));
  closeHandle(reinterpret_cast<uv_handle_t*>(&retryTimer_));
  closeHandle(reinterpret_cast<uv_handle_t*>(&closeTimer_));
}

void Transport::closeHandle(uv_handle_t* handle) {
  uv_close(handle, [](uv_handle_t* closed) {
    Transport* transport = owner(closed);
    if (--transport->handles_ == 0) transport->handler_.closed();
  });
}

SocketRecord* Transport::find(Id id, SocketKind kind) {
  SocketRecord* socket = open_ ? sockets_.find(id) : nullptr;
  return socket != nullptr && socket->kind == kind ? socket : nullptr;
}

int Transport::descriptor(Id id) {
  SocketRecord* socket = open_ ? sockets_.find(id) : nullptr;
  return socket == nullptr ? -1 : socket->fd.get();
}

uint32_t Transport::pendingBytes(Id id) {
  SocketRecord* socket = open_ ? sockets_.find(id) : nullptr;
  return socket == nullptr ? 0 : socket->pending.size();
}

Transport::Counts Transport::counts() {
  if (!open_) return {0, 0, 0};
  return {connections_, static_cast<uint32_t>(listeners_.size()), closing_.size()};
}

// ---- turns, rounds, batches

void Transport::serve() {
  if (!open_ || serving_) return;
  serving_ = servedThisIteration_ = true;
  now_ = nowMs(CLOCK_MONOTONIC);
  const double deadline = now_ + kTurnMs;
  for (int round = 0; open_ && round < kRounds; ++round) {
    serveReady(deadline);
    if (!open_) break;
    const int count = epoll_wait(epoll_.fd(), epollEvents_.data(), kEpollEvents, 0);
    serveEpoll(count, deadline);
    if (!deliver()) break;
    if ((count <= 0 && ready_.empty()) || now_ > deadline) break;
  }
  serving_ = false;
  if (!open_) return;
  if (ready_.empty()) {
    sleep();
  } else {
    wake();
  }
}

void Transport::serveReady(double deadline) {
  std::swap(ready_, attending_);
  size_t i = 0;
  for (; i < attending_.size() && now_ <= deadline; ++i) {
    if (!makeRoom()) break;
    SocketRecord* socket = sockets_.find(attending_[i]);
    if (socket == nullptr) continue;
    socket->queued = false;
    look(attending_[i], *socket);
  }
  // Out of time: what was not looked at stands first in the next turn.
  if (i < attending_.size()) ready_.insert(ready_.begin(), attending_.begin() + static_cast<ptrdiff_t>(i), attending_.end());
  attending_.clear();
}

void Transport::serveEpoll(int count, double deadline) {
  for (int i = 0; i < count; ++i) {
    const uint64_t key = epollEvents_[static_cast<size_t>(i)].data.u64;
    if (key & Closing::kKeyBit) {
      if (closing_.serve(key, now_)) retryAccept();
      continue;
    }
    if (!makeRoom()) return;
    const Id id = static_cast<Id>(key);
    SocketRecord* socket = sockets_.find(id);
    if (socket == nullptr) continue;
    socket->hints |= epollEvents_[static_cast<size_t>(i)].events;
    // An edge is reported only once, so what there is no time for is noted down.
    if (now_ <= deadline) {
      look(id, *socket);
    } else {
      enqueue(id, *socket);
    }
  }
}

// Hands the batch over and carries out what comes back. False when the transport is closed afterwards.
bool Transport::deliver() {
  const uint32_t count = batch_.count();
  if (count > 0) batch_.writeClock();
  for (uint32_t from = 0; open_ && from < count;) {
    int32_t& cursor = arrays_.control[kControlCursor];
    cursor = static_cast<int32_t>(from);
    const BatchHandler::Outcome outcome = handler_.handle(from, count);
    if (outcome == BatchHandler::Outcome::Gone) close();
    const uint32_t reached = std::clamp(static_cast<uint32_t>(cursor), from, count - 1);
    flushOrReport();
    if (outcome != BatchHandler::Outcome::Threw) break;
    from = reached + 1;
    handler_.reportException();
    flushOrReport();  // whoever heard of the exception may have submitted something too
  }
  batch_.reset();
  if (count > 0) now_ = nowMs(CLOCK_MONOTONIC);
  return open_;
}

void Transport::flushOrReport() {
  const char* mistake = flush();
  if (mistake != nullptr) handler_.reportMistake(mistake);
}

void Transport::enqueue(Id id, SocketRecord& socket) {
  if (socket.queued) return;
  socket.queued = true;
  ready_.push_back(id);
  if (serving_) return;
  servedThisIteration_ = false;
  wake();
}

// An idle handle makes libuv poll without waiting; serving from the check phase leaves timers, messages and other
// descriptors their turn in each iteration.
void Transport::wake() {
  if (awake_) return;
  awake_ = true;
  uv_idle_start(&idle_, [](uv_idle_t*) {});
  uv_check_start(&check_, [](uv_check_t* check) {
    Transport* transport = owner(check);
    if (!transport->servedThisIteration_) transport->serve();
    transport->servedThisIteration_ = false;
  });
}

void Transport::sleep() {
  if (!awake_) return;
  awake_ = false;
  uv_idle_stop(&idle_);
  uv_check_stop(&check_);
}

// ---- connections

Id Transport::connect(const SocketAddress& remote, const SocketAddress* local, Limits limits) {
  SocketResult started = startConnect(remote, local);
  const Id id = add(started.fd, SocketKind::Connection, limits);
  if (id < 0) return id;
  SocketRecord& connection = *sockets_.find(id);
  connection.connecting = true;
  if (started.error != 0) fail(id, connection, started.error, false);
  return id;
}

Id Transport::adopt(int fd) {
  const int error = prepareAdopted(fd);
  if (error != 0) return -error;
  setNoDelay(fd);
  Descriptor taken(fd);
  const Id id = add(taken, SocketKind::Connection, acceptedLimits_);
  if (id < 0) {
    taken.release();  // still the caller's
    return id;
  }
  sockets_.find(id)->shared = true;
  return id;
}

// Takes the descriptor and gives it an id, and a place in the epoll set when it is a connection. When either fails, the
// answer is a negative errno and the descriptor is not taken.
Id Transport::add(Descriptor& fd, SocketKind kind, Limits limits) {
  const Id id = sockets_.allocate();
  if (id < 0) return -ENOBUFS;
  SocketRecord& socket = *sockets_.find(id);
  socket.kind = kind;
  socket.highWatermark = limits.highWatermark;
  socket.hardLimit = limits.hardLimit;
  if (kind == SocketKind::Connection) {
    const int error = fd ? epoll_.add(fd.get(), kConnectionInterest, static_cast<uint32_t>(id)) : 0;
    if (error != 0) {
      sockets_.release(id);
      return -error;
    }
    socket.inEpoll = true;
    ++connections_;
  }
  socket.fd = std::move(fd);
  return id;
}

void Transport::look(Id id, SocketRecord& socket) {
  if (socket.kind == SocketKind::Listener) {
    socket.hints = 0;
    acceptSome(id, socket);
  } else {
    lookAtConnection(id, socket);
  }
}

// epoll's bits are only hints; what recv(), send() and SO_ERROR answer decides.
void Transport::lookAtConnection(Id id, SocketRecord& connection) {
  const uint32_t hints = std::exchange(connection.hints, 0);
  if (connection.dead) return;
  if (connection.error == 0) {
    if (connection.connecting && !finishConnect(id, connection, hints)) return;
    if (hints & (EPOLLIN | kHangupHints)) connection.readable = true;
    if (hints & kHangupHints) connection.hangup = true;
    if (hints & kErrorHints) connection.errorHint = true;
    if ((hints & EPOLLOUT) && !connection.pending.empty()) writePending(id, connection);
  }
  if (connection.error == 0 && connection.errorHint && (connection.paused || connection.ended)) {
    connection.errorHint = false;
    const int error = takeSocketError(connection.fd.get());
    if (error != 0) return reportReset(id, connection, error);
  }
  const bool readFirst = connection.readBeforeReset && !connection.paused && !connection.ended;
  if (connection.error != 0 && !readFirst) return reportReset(id, connection, connection.error);
  reportPressure(id, connection);
  if (connection.readable && !connection.paused && !connection.ended) receive(id, connection);
}

bool Transport::finishConnect(Id id, SocketRecord& connection, uint32_t hints) {
  if (!(hints & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
    reportPressure(id, connection);
    return false;
  }
  const int error = takeSocketError(connection.fd.get());
  if (error != 0) {
    reportReset(id, connection, error);
    return false;
  }
  connection.connecting = false;
  batch_.add(id, Event::Connected);
  if (connection.pending.empty() && connection.shutdownAsked) shutdown(connection.fd.get(), SHUT_WR);
  return true;
}

void Transport::reportPressure(Id id, SocketRecord& connection) {
  const uint32_t pending = connection.pending.size();
  if (!connection.blocked && pending > connection.highWatermark) {
    connection.blocked = true;
    batch_.add(id, Event::Blocked, pending);
  } else if (connection.blocked && pending <= connection.highWatermark / 2) {
    connection.blocked = false;
    batch_.add(id, Event::Drained, pending);
  }
}

void Transport::receive(Id id, SocketRecord& connection) {
  if (connection.servedInBatch == batch_.number()) return enqueue(id, connection);
  const uint32_t share = std::min(batch_.windowLeft(), kShareBytes);
  uint32_t total = 0;
  ssize_t got;
  int error = 0;
  do {
    got = readBytes(connection.fd.get(), batch_.window() + total, share - total);
    if (got < 0) error = errno;
    if (got > 0) total += static_cast<uint32_t>(got);
    // A short read has emptied the socket, and what comes later is a new edge; but a hang-up that was hinted at already
    // comes with no edge of its own.
  } while (got > 0 && total < share && (connection.hangup || connection.error != 0));

  if (total > 0) {
    batch_.addData(id, total);
    connection.servedInBatch = batch_.number();
  }
  if (total == share) return enqueue(id, connection);
  connection.readable = false;
  if (got > 0) return;
  if (got < 0 && error != EAGAIN) return reportReset(id, connection, connection.error != 0 ? connection.error : error);
  if (connection.error != 0) return reportReset(id, connection, connection.error);
  if (got == 0) {
    connection.ended = true;
    batch_.add(id, Event::End);
  }
  if (connection.errorHint) {
    connection.errorHint = false;
    const int late = takeSocketError(connection.fd.get());
    if (late != 0) reportReset(id, connection, late);
  }
}

// One send is enough: when it falls short the kernel has noted that room is waited for, and EPOLLOUT follows.
void Transport::writePending(Id id, SocketRecord& connection) {
  PendingQueue& pending = connection.pending;
  iovec range{const_cast<uint8_t*>(pending.data()), pending.size()};
  const ssize_t sent = writeBytes(connection.fd.get(), &range, 1, range.iov_len);
  if (sent < 0) {
    if (errno != EAGAIN) fail(id, connection, errno, true);
    return;
  }
  pending.consume(static_cast<uint32_t>(sent));
  if (pending.empty() && connection.shutdownAsked) shutdown(connection.fd.get(), SHUT_WR);
}

// The connection is lost; Reset follows in a batch, with `readFirst` after what was received before.
void Transport::fail(Id id, SocketRecord& connection, int error, bool readFirst) {
  if (connection.error != 0 || connection.dead) return;
  connection.error = error;
  connection.readBeforeReset = readFirst;
  connection.readable = true;
  connection.pending.clear();
  enqueue(id, connection);
}

void Transport::reportReset(Id id, SocketRecord& connection, int error) {
  connection.error = error;
  connection.dead = true;
  connection.pending.clear();
  batch_.add(id, Event::Reset, 0, static_cast<uint32_t>(error));
}

// The id dies. With the descriptor still in the record, the descriptor is closed too.
void Transport::release(Id id, SocketRecord& socket) {
  const bool hadDescriptor = static_cast<bool>(socket.fd);
  if (socket.shared && hadDescriptor) epoll_.remove(socket.fd.get());
  if (socket.kind == SocketKind::Connection) --connections_;
  sockets_.release(id);
  if (hadDescriptor) retryAccept();
}

}  // namespace baton
