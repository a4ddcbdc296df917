#include "transport.h"

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

// Stands for libuv's own descriptors in the epoll set.
constexpr uint64_t kLoopKey = ~0ull;

// The transport that waits for this thread.
thread_local Transport* waiting = nullptr;

}  // namespace

Transport::Transport(const Arrays& arrays, Limits accepted, BatchHandler& handler)
    : arrays_(arrays), acceptedLimits_(accepted), handler_(handler), batch_(arrays), closing_(epoll_) {}

int Transport::open(uv_loop_t* loop) {
  if (epoll_.fd() < 0) return EMFILE;
  loop_ = loop;
  waits_ = waiting == nullptr;
  if (waits_) {
    const int error = epoll_.add(uv_backend_fd(loop), EPOLLIN, kLoopKey);
    if (error != 0) return error;
    waiting = this;
  } else {
    const int error = uv_poll_init(loop, &alarm_, epoll_.fd());
    if (error != 0) return -error;
    handles_.push_back(base(alarm_));
    uv_poll_start(&alarm_, UV_READABLE, [](uv_poll_t*, int, int) {});
  }
  uv_prepare_init(loop, &prepare_);
  uv_idle_init(loop, &idle_);
  uv_timer_init(loop, &retryTimer_);
  uv_timer_init(loop, &closeTimer_);
  for (uv_handle_t* handle : {base(idle_), base(retryTimer_), base(closeTimer_), base(prepare_)}) {
    handles_.push_back(handle);
  }
  for (uv_handle_t* handle : handles_) {
    handle->data = this;
    uv_unref(handle);
  }
  // This one alone keeps the thread alive.
  uv_ref(base(prepare_));
  open_ = true;
  return -uv_prepare_start(&prepare_, [](uv_prepare_t* prepare) { owner(prepare)->attend(); });
}

void Transport::close() {
  if (!open_) return;
  open_ = false;
  if (waiting == this) waiting = nullptr;
  // The records stay until the handles are closed: this may be called from within a batch.
  sockets_.forEach([this](Id, SocketRecord& socket) {
    if (socket.shared && socket.fd) epoll_.remove(socket.fd.get());
    // Bytes are lost, so the end must not look like an orderly one; but a frozen connection may have gone to another process.
    if (!socket.pending.empty() && !socket.frozen) socket.fd.abort();
    socket.fd.close();
    socket.pending.clear();
  });
  closing_.clear();
  openHandles_ = handles_.size();
  for (uv_handle_t* handle : handles_) {
    uv_close(handle, [](uv_handle_t* closed) {
      Transport* transport = owner(closed);
      if (--transport->openHandles_ == 0) transport->handler_.closed();
    });
  }
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

// Runs before libuv polls, and waits in its place: one system call then serves sockets and libuv's descriptors alike, and one
// that finds sockets only goes on without libuv. Goes back when something else than the sockets wants the thread.
void Transport::attend() {
  uv_idle_stop(&idle_);
  int patience;
  do {
    patience = waitingTime();
    loopCalls_ = false;
    const int count = poll(patience);
    if (count == 0 && ready_.empty()) break;
    serve(count);
  } while (open_ && patience != 0 && !loopCalls_);
  // libuv is not to wait a second time.
  if (open_ && (waits_ || !ready_.empty())) keepAwake();
}

// In milliseconds, -1 for ever: until libuv's next timer, and not at all when it has other things to do.
int Transport::waitingTime() {
  if (!waits_ || !ready_.empty()) return 0;
  uv_update_time(loop_);
  return uv_backend_timeout(loop_);
}

// How many events there are for sockets, perhaps beside libuv's.
int Transport::poll(int patience) {
  const int count = epoll_wait(epoll_.fd(), epollEvents_.data(), kEpollEvents, patience);
  if (count != 1 || epollEvents_[0].data.u64 != kLoopKey) return std::max(count, 0);
  loopCalls_ = true;
  return 0;
}

void Transport::keepAwake() {
  uv_idle_start(&idle_, [](uv_idle_t*) {});
}

void Transport::serve(int count) {
  serving_ = true;
  now_ = nowMs(CLOCK_MONOTONIC);
  const double deadline = now_ + kTurnMs;
  handler_.beginTurn();
  for (int round = 1;; ++round) {
    serveReady(deadline);
    if (!open_) break;
    serveEpoll(count, deadline);
    if (!deliver() || now_ > deadline || round == kRounds) break;
    count = poll(0);
    if (count == 0 && ready_.empty()) break;
  }
  handler_.endTurn();
  serving_ = false;
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
  ready_.insert(ready_.begin(), attending_.begin() + static_cast<ptrdiff_t>(i), attending_.end());
  attending_.clear();
}

void Transport::serveEpoll(int count, double deadline) {
  for (int i = 0; i < count; ++i) {
    const uint64_t key = epollEvents_[static_cast<size_t>(i)].data.u64;
    if (key == kLoopKey) {
      loopCalls_ = true;
      continue;
    }
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
  if (!serving_) keepAwake();
}

}  // namespace baton
