#include "transport/transport.h"

#include <algorithm>
#include <cerrno>

namespace baton {
namespace {

template <typename Handle>
uv_handle_t* base(Handle& handle) {
  return reinterpret_cast<uv_handle_t*>(&handle);
}

template <typename Handle>
Transport* owner(const Handle* handle) {
  return static_cast<Transport*>(handle->data);
}

}  // namespace

Transport::Transport(const Arrays& arrays, Limits accepted, uint32_t reserve, BatchHandler& handler)
    : arrays_(arrays),
      acceptedLimits_(accepted),
      descriptorLimit_(reserve),
      handler_(handler),
      batch_(arrays),
      closing_(epoll_) {}

int Transport::open(uv_loop_t* loop) {
  if (epoll_.fd() < 0) return EMFILE;
  const int error = uv_poll_init(loop, &poll_, epoll_.fd());
  if (error != 0) return -error;
  uv_idle_init(loop, &idle_);
  uv_check_init(loop, &check_);
  uv_timer_init(loop, &retryTimer_);
  uv_timer_init(loop, &closeTimer_);
  poll_.data = idle_.data = check_.data = retryTimer_.data = closeTimer_.data = this;
  handles_ = 5;
  open_ = true;
  // Only the poll handle keeps the thread alive.
  for (uv_handle_t* handle : {base(idle_), base(check_), base(retryTimer_), base(closeTimer_)}) uv_unref(handle);
  return -uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) { owner(poll)->serve(); });
}

void Transport::close() {
  if (!open_) return;
  open_ = false;
  // The records are kept until the handles are closed: this may be called within a batch.
  sockets_.forEach([this](Id, SocketRecord& socket) {
    SocketStream& stream = socket.stream;
    if (socket.listening) epoll_.remove(socket.listening.get());
    if (socket.shared && stream.isOpen()) epoll_.remove(stream.descriptor());
    socket.listening.close();
    // A frozen connection may have moved to another process.
    if (socket.frozen) stream.closeLocally();
    else if (socket.error != 0) stream.abort();
    else stream.close();
  });
  closing_.clear();
  closing_.notifications().clear();
  for (uv_handle_t* handle : {base(poll_), base(idle_), base(check_), base(retryTimer_), base(closeTimer_)}) {
    closeHandle(handle);
  }
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
  return socket == nullptr ? -1 : socket->stream.descriptor();
}

uint32_t Transport::pendingBytes(Id id) {
  SocketRecord* socket = open_ ? sockets_.find(id) : nullptr;
  return socket == nullptr ? 0 : socket->stream.unsentBytes();
}

Transport::Counts Transport::counts() {
  if (!open_) return {0, 0, 0};
  return {connections_, static_cast<uint32_t>(listeners_.size()), closing_.size()};
}

void Transport::serve() {
  if (!open_ || serving_) return;
  serving_ = servedThisIteration_ = true;
  now_ = nowMs(CLOCK_MONOTONIC);
  const double deadline = now_ + kTurnMs;
  handler_.beginTurn();
  for (int round = 0; open_ && round < kRounds; ++round) {
    serveReady(deadline);
    if (!open_) break;
    const int count = epoll_wait(epoll_.fd(), epollEvents_.data(), kEpollEvents, 0);
    serveEpoll(count, deadline);
    deliverNotifications();
    if (!open_) break;
    if (!deliver()) break;
    if ((count <= 0 && ready_.empty()) || now_ > deadline) break;
  }
  handler_.endTurn();
  serving_ = false;
  if (!open_) return;
  if (ready_.empty() && closing_.notifications().empty()) {
    sleep();
  } else {
    wake();
  }
}

void Transport::serveReady(double deadline) {
  std::swap(ready_, current_);
  size_t i = 0;
  for (; i < current_.size() && now_ <= deadline; ++i) {
    if (!makeRoom()) break;
    SocketRecord* socket = sockets_.find(current_[i]);
    if (socket == nullptr) continue;
    socket->queued = false;
    serveSocket(current_[i], *socket);
  }
  // Out of time: sockets that were not served come first in the next turn.
  ready_.insert(ready_.begin(), current_.begin() + static_cast<ptrdiff_t>(i), current_.end());
  current_.clear();
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
    // An edge is reported only once, so it is queued if there is no time left.
    if (now_ <= deadline) {
      serveSocket(id, *socket);
    } else {
      enqueue(id, *socket);
    }
  }
}

void Transport::deliverNotifications() {
  std::vector<Closing::Notification>& notifications = closing_.notifications();
  while (!notifications.empty() && makeRoom()) {
    const Closing::Notification& last = notifications.back();
    batch_.add(-1, last.event, last.token, last.detail ? 1 : 0);
    notifications.pop_back();
  }
}

// Notifications that are added outside of a turn must not wait for another event.
void Transport::wakeToNotify() {
  if (closing_.notifications().empty() || serving_) return;
  servedThisIteration_ = false;
  wake();
}

// Delivers the batch to JavaScript and carries out its submissions. Returns false if the transport is closed afterwards.
bool Transport::deliver() {
  const uint32_t count = batch_.count();
  if (count > 0) {
    batch_.writeClock();
    writePendingSize();
  }
  for (uint32_t from = 0; open_ && from < count;) {
    int32_t& cursor = arrays_.control[kControlCursor];
    cursor = static_cast<int32_t>(from);
    const BatchHandler::Outcome outcome = handler_.handle(from, count);
    if (outcome == BatchHandler::Outcome::Gone) close();
    // JavaScript ends a turn at an earlier event when the turn has used much memory: the rest follows after the flush.
    from = std::clamp(static_cast<uint32_t>(cursor), from, count - 1) + 1;
    flushOrReport();
    writePendingSize();
    if (outcome != BatchHandler::Outcome::Threw) continue;
    handler_.reportException();
    flushOrReport();  // the exception handler may have submitted too
  }
  batch_.reset();
  releasedInBatch_ = 0;
  if (count > 0) now_ = nowMs(CLOCK_MONOTONIC);
  return open_;
}

void Transport::writePendingSize() {
  arrays_.control[kControlPending] = static_cast<int32_t>(pendingCapacity >> kPendingShift);
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

// An idle handle makes libuv poll without waiting. Serving in the check phase lets timers, messages and other descriptors run in each
// iteration.
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

}  // namespace baton
