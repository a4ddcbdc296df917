// Accepting: who stands in the epoll set, how many connections a round takes, and what happens without resources.

#include <algorithm>
#include <cerrno>

#include "transport/transport.h"

namespace baton {
namespace {

// The connection was lost before it was accepted, or the network hiccuped: the next one may be fine (see accept(2)).
bool isPassing(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

// ENOSPC: this user has as many sockets in epoll sets as the system allows (fs.epoll.max_user_watches).
bool isShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC;
}

}  // namespace

Id Transport::addListener(int fd, bool contended) {
  SocketResult copy = baton::duplicate(fd);
  if (copy.error != 0) return -copy.error;
  setNoDelay(copy.fd.get());  // accepted connections inherit it
  const Id id = sockets_.allocate(releasedInBatch_);
  if (id < 0) return -ENOBUFS;
  SocketRecord& listener = *sockets_.find(id);
  listener.kind = SocketKind::Listener;
  listener.listening = std::move(copy.fd);
  listener.contended = contended;
  listener.accepting = true;
  const int error = setInEpoll(id, listener, true);
  if (error != 0) {
    releaseSlot(id);
    return -error;
  }
  listeners_.push_back(id);
  return id;
}

void Transport::setAccepting(Id id, bool accepting) {
  SocketRecord* listener = find(id, SocketKind::Listener);
  if (listener == nullptr) return;
  listener->accepting = accepting;
  updateListener(id, *listener);
}

void Transport::removeListener(Id id, bool acceptRest) {
  SocketRecord* listener = find(id, SocketKind::Listener);
  if (listener == nullptr) return;
  if (!acceptRest) return dropListener(id, *listener);
  listener->removed = true;
  updateListener(id, *listener);
  enqueue(id, *listener);
}

// 0 or errno. A connection at a socket that several threads wait at wakes them all: EPOLLEXCLUSIVE counts only for threads that
// wait in the set itself, and these wait in libuv's, where this set is (measured: 6 of 6 threads woke, with it or without).
// With eight idle threads a connection costs 10.7 context switches, with a socket for each of them 3.0; and of 1,000 that come one
// by one a thread gets 4 to 374. With the socket in libuv's own set, exclusive, and put behind the others after each accept, it was
// 3.4 switches, 124 to 127 connections, and a sixth less processor time. But a connection then waits for the one thread that was
// woken, even if that one gets no processor: on a busy machine p99 was 1.2 to 3.2 times as long. And libuv's set is libuv's affair.
int Transport::setInEpoll(Id id, SocketRecord& listener, bool wanted) {
  if (listener.inEpoll == wanted) return 0;
  const int error = wanted ? epoll_.add(listener.listening.get(), EPOLLIN, static_cast<uint32_t>(id))
                           : epoll_.remove(listener.listening.get());
  listener.inEpoll = wanted && error == 0;
  return error;
}

void Transport::updateListener(Id id, SocketRecord& listener) {
  const bool wanted = listener.accepting && !listener.resting && !listener.removed;
  // The set may be full for this user: try again later like any other want of resources.
  const int error = setInEpoll(id, listener, wanted);
  if (error != 0) rest(listener);
}

void Transport::acceptSome(Id id, SocketRecord& listener) {
  if (listener.resting || !(listener.accepting || listener.removed)) return;
  const int share = listener.contended ? kContendedAcceptShare : kAcceptShare;
  for (int accepted = 0; accepted < share && batch_.hasRoom(); ++accepted) {
    if (!descriptorLimit_.mayAccept(epoll_.fd(), now_)) {
      if (accepted > 0) break;  // perhaps nobody waits: then this is not looked at again
      descriptorLimit_.wait(now_);
      return acceptFailed(id, listener, EMFILE);
    }
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    auto* address = reinterpret_cast<sockaddr*>(&peer);
    Descriptor fd(accept4(listener.listening.get(), address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (isPassing(errno)) continue;
      if (errno != EAGAIN) return acceptFailed(id, listener, errno);
      listener.failReported = false;
      descriptorLimit_.waitNoMore();
      if (listener.removed) dropListener(id, listener);
      return;
    }
    descriptorLimit_.accepted(fd.get(), now_);
    SocketStream stream(std::move(fd), peer.ss_family == AF_UNIX);
    const Id connection = addConnection(stream, acceptedLimits_);
    if (connection < 0) return acceptFailed(id, listener, -connection);
    // What it has sent waits for the next batch: whoever hears of it may want to pause it, or only to look at its bytes.
    sockets_.find(connection)->servedInBatch = batch_.number();
    listener.failReported = false;
    batch_.addAccept(connection, id, peer, std::min<socklen_t>(length, sizeof peer));
  }
  if (listener.removed) enqueue(id, listener);
}

// Said once until an accept succeeds again. Out of the epoll set meanwhile: a level-triggered listener would spin.
void Transport::acceptFailed(Id id, SocketRecord& listener, int error) {
  if (!listener.failReported) batch_.add(id, Event::AcceptFailed, 0, static_cast<uint32_t>(error));
  listener.failReported = true;
  if (listener.removed && !isShortage(error)) return dropListener(id, listener);
  rest(listener);
  updateListener(id, listener);
}

void Transport::rest(SocketRecord& listener) {
  if (!listener.resting) ++resting_;
  listener.resting = true;
  retryLater();
}

void Transport::retryLater() {
  uv_timer_start(&retryTimer_, [](uv_timer_t* timer) { static_cast<Transport*>(timer->data)->retryAccept(); },
                 kRetryAcceptMs, 0);
}

// Something may have become free: a descriptor was closed, or time has passed.
void Transport::retryAccept() {
  if (resting_ == 0 || !open_) return;
  // Asked the clock: where all listeners rest and nothing happens on connections, no turn sets now_.
  const double now = nowMs(CLOCK_MONOTONIC);
  if (!descriptorLimit_.mayAccept(epoll_.fd(), now)) {
    descriptorLimit_.wait(now);
    return retryLater();
  }
  resting_ = 0;
  // In turn: for those behind the first there may be nothing left.
  std::rotate(listeners_.begin(), listeners_.begin() + 1, listeners_.end());
  for (const Id id : listeners_) {
    SocketRecord& listener = *sockets_.find(id);
    if (!listener.resting) continue;
    listener.resting = false;
    updateListener(id, listener);
    enqueue(id, listener);  // also where nobody waits any more: then others need not leave it anything
  }
}

bool Transport::isStarved() {
  return open_ && std::any_of(listeners_.begin(), listeners_.end(), [this](Id id) {
    const SocketRecord& listener = *sockets_.find(id);
    return listener.failReported && (listener.accepting || listener.removed);
  });
}

void Transport::dropListener(Id id, SocketRecord& listener) {
  setInEpoll(id, listener, false);
  if (listener.resting && --resting_ == 0) descriptorLimit_.waitNoMore();
  listeners_.erase(std::find(listeners_.begin(), listeners_.end(), id));
  releaseSlot(id);
}

}  // namespace baton
