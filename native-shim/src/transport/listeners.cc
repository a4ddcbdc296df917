// Accepting: which listeners are in the epoll set, how many connections are accepted per round, and what happens without resources.

#include <algorithm>
#include <cerrno>

#include "transport/transport.h"

namespace baton {
namespace {

// The connection was lost before it was accepted, or the network had a transient error: the next accept() may succeed (see accept(2)).
bool isTransient(int error) {
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

// ENOSPC: this user has reached the limit of sockets in epoll sets (fs.epoll.max_user_watches).
bool isShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ENOSPC;
}

}  // namespace

Id Transport::addListener(int fd, bool contended, int maxAccepted) {
  SocketResult copy = baton::duplicate(fd);
  if (copy.error != 0) return -copy.error;
  setNoDelay(copy.fd.get());  // accepted connections inherit it
  const Id id = sockets_.allocate(releasedInBatch_);
  if (id < 0) return -ENOBUFS;
  SocketRecord& listener = *sockets_.find(id);
  listener.kind = SocketKind::Listener;
  listener.listening = std::move(copy.fd);
  const int share = contended ? kContendedAcceptShare : kAcceptShare;
  listener.acceptShare = static_cast<uint8_t>(maxAccepted > 0 ? std::min(share, maxAccepted) : share);
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

// Returns 0 or errno. A connection on a socket that several threads share wakes all of them: EPOLLEXCLUSIVE applies only to threads that
// wait in the set itself, and these wait in libuv's set, which contains this one (measured: 6 of 6 threads woke, with it or without). With
// eight idle threads a connection costs 10.7 context switches, with a socket for each thread 3.0; and of 1,000 sequential connections a
// thread gets 4 to 374. With the socket in libuv's own set, exclusive, and requeued after each accept, it was 3.4 switches, 124 to 127
// connections, and a sixth less processor time. But a connection then waits for the one thread that was woken, even if that thread is not
// scheduled: on a busy machine p99 was 1.2 to 3.2 times as long. Besides, libuv's set is internal to libuv.
int Transport::setInEpoll(Id id, SocketRecord& listener, bool wanted) {
  if (listener.inEpoll == wanted) return 0;
  const int error = wanted ? epoll_.add(listener.listening.get(), EPOLLIN, static_cast<uint32_t>(id))
                           : epoll_.remove(listener.listening.get());
  listener.inEpoll = wanted && error == 0;
  return error;
}

void Transport::updateListener(Id id, SocketRecord& listener) {
  const bool wanted = listener.accepting && !listener.suspended && !listener.removed;
  // The user's limit of epoll entries may be reached: retry later, as for any other shortage.
  const int error = setInEpoll(id, listener, wanted);
  if (error != 0) suspend(listener);
}

void Transport::acceptSome(Id id, SocketRecord& listener) {
  if (listener.suspended || !(listener.accepting || listener.removed)) return;
  const int share = listener.acceptShare;
  for (int accepted = 0; accepted < share && batch_.hasRoom(); ++accepted) {
    if (!descriptorLimit_.mayAccept(epoll_.fd(), now_)) {
      if (accepted > 0) break;  // perhaps the backlog is empty: then it is not checked again
      descriptorLimit_.wait(now_);
      return acceptFailed(id, listener, EMFILE);
    }
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    auto* address = reinterpret_cast<sockaddr*>(&peer);
    Descriptor fd(accept4(listener.listening.get(), address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (isTransient(errno)) continue;
      if (errno != EAGAIN) return acceptFailed(id, listener, errno);
      listener.failReported = false;
      descriptorLimit_.stopWaiting();
      if (listener.removed) dropListener(id, listener);
      return;
    }
    descriptorLimit_.accepted(fd.get(), now_);
    SocketStream stream(std::move(fd), peer.ss_family == AF_UNIX);
    const Id connection = addConnection(stream, acceptedLimits_);
    if (connection < 0) return acceptFailed(id, listener, -connection);
    // Its bytes wait for the next batch: JavaScript may pause it first, or only peek.
    sockets_.find(connection)->servedInBatch = batch_.number();
    listener.failReported = false;
    batch_.addAccept(connection, id, peer, std::min<socklen_t>(length, sizeof peer));
  }
  if (listener.removed) enqueue(id, listener);
}

// Reports once until an accept succeeds again. The listener leaves the epoll set meanwhile, because a level-triggered one would spin.
void Transport::acceptFailed(Id id, SocketRecord& listener, int error) {
  if (!listener.failReported) batch_.add(id, Event::AcceptFailed, 0, static_cast<uint32_t>(error));
  listener.failReported = true;
  if (listener.removed && !isShortage(error)) return dropListener(id, listener);
  suspend(listener);
  updateListener(id, listener);
}

void Transport::suspend(SocketRecord& listener) {
  if (!listener.suspended) ++suspended_;
  listener.suspended = true;
  retryLater();
}

void Transport::retryLater() {
  uv_timer_start(&retryTimer_, [](uv_timer_t* timer) { static_cast<Transport*>(timer->data)->retryAccept(); },
                 kRetryAcceptMs, 0);
}

// Called when resources may be available again: a descriptor was closed, or time has passed.
void Transport::retryAccept() {
  if (suspended_ == 0 || !open_) return;
  // Reads the clock: if all listeners are suspended and connections are idle, no turn sets now_.
  const double now = nowMs(CLOCK_MONOTONIC);
  if (!descriptorLimit_.mayAccept(epoll_.fd(), now)) {
    descriptorLimit_.wait(now);
    return retryLater();
  }
  suspended_ = 0;
  // Rotates, because nothing may be left for the listeners after the first.
  std::rotate(listeners_.begin(), listeners_.begin() + 1, listeners_.end());
  for (const Id id : listeners_) {
    SocketRecord& listener = *sockets_.find(id);
    if (!listener.suspended) continue;
    listener.suspended = false;
    updateListener(id, listener);
    enqueue(id, listener);  // even if its backlog is empty: then other threads need not reserve anything for it
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
  if (listener.suspended && --suspended_ == 0) descriptorLimit_.stopWaiting();
  listeners_.erase(std::find(listeners_.begin(), listeners_.end(), id));
  releaseSlot(id);
}

}  // namespace baton
