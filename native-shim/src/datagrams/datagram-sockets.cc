#include "datagrams/datagram-sockets.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "datagrams/datagram-address.h"
#include "transport/event-batch.h"

namespace baton {
namespace {

// Words of a record: [id, kind or result, offset, length, peer, local].
constexpr uint32_t kStride = 16;
constexpr uint32_t kPeerWord = 4;
constexpr uint32_t kLocalWord = kPeerWord + kAddressWords;
static_assert(kLocalWord + kAddressWords <= kStride, "both addresses fit");

constexpr uint32_t kAlignment = 64;
constexpr uint32_t kEpollKeyMask = 0x7fffffff;

uint32_t aligned(uint32_t length) { return (length + kAlignment - 1) & ~(kAlignment - 1); }

// Room for the destination address, the drop counter, and a second address of IPv4 on an IPv6 socket.
struct ReceiveControl {
  alignas(cmsghdr) unsigned char bytes[128];
};

bool enable(int fd, int level, int name) {
  const int on = 1;
  return setsockopt(fd, level, name, &on, sizeof on) == 0;
}

// Returns how many datagrams the socket has dropped: more than 0 if another process has used it before.
uint32_t dropsSoFar(int fd) {
  uint32_t counts[SK_MEMINFO_VARS] = {};
  socklen_t length = sizeof counts;
  return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counts, &length) == 0 ? counts[SK_MEMINFO_DROPS] : 0;
}

bool findOverflow(msghdr& message, uint32_t& count) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SO_RXQ_OVFL) continue;
    memcpy(&count, CMSG_DATA(each), sizeof count);
    return true;
  }
  return false;
}

}  // namespace

int DatagramSockets::open(uv_loop_t* loop) {
  if (epoll_.fd() < 0) return EMFILE;
  const int error = uv_poll_init(loop, &poll_, epoll_.fd());
  if (error != 0) return -error;
  poll_.data = this;
  open_ = true;
  // The thread's transport keeps the event loop alive.
  uv_unref(reinterpret_cast<uv_handle_t*>(&poll_));
  return -uv_poll_start(&poll_, UV_READABLE,
                        [](uv_poll_t* poll, int, int) { static_cast<DatagramSockets*>(poll->data)->serve(); });
}

void DatagramSockets::close() {
  if (!open_) return;
  open_ = false;
  sockets_.forEach([this](Id, Socket& socket) {
    if (socket.receives) epoll_.remove(socket.fd.get());
    socket.fd.close();
  });
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_),
           [](uv_handle_t* handle) { static_cast<DatagramSockets*>(handle->data)->handler_.closed(); });
}

Id DatagramSockets::addListener(int fd, uint32_t maxBytes) {
  SocketResult copy = duplicate(fd);
  if (copy.error != 0) return -copy.error;
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (getsockname(copy.fd.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0) return -errno;
  const bool v6 = local.ss_family == AF_INET6;
  const bool set = v6 ? enable(copy.fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO)
                      : enable(copy.fd.get(), IPPROTO_IP, IP_PKTINFO);
  if (!set) return -errno;
  return add(std::move(copy.fd), maxBytes, true);
}

Id DatagramSockets::connect(const SocketAddress& remote, const SocketAddress* local,
                            const std::vector<SocketOption>& options, uint32_t maxBytes) {
  Descriptor fd(socket(remote.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return -errno;
  if (!limit_.leavesReserve(fd.get(), nowMs(CLOCK_MONOTONIC))) return -EMFILE;
  for (const SocketOption& option : options) {
    if (const int error = setSocketOption(fd.get(), option)) return -error;
  }
  if (local != nullptr && bind(fd.get(), local->get(), local->length) != 0) return -errno;
  if (::connect(fd.get(), remote.get(), remote.length) != 0) return -errno;
  const Id id = add(std::move(fd), maxBytes, false);
  if (id < 0) return id;
  const int error = setReceiving(id, true);
  if (error == 0) return id;
  remove(id);
  return -error;
}

Id DatagramSockets::add(Descriptor fd, uint32_t maxBytes, bool isListener) {
  const Id id = sockets_.allocate(released_);
  if (id < 0) return -ENOBUFS;
  Socket& socket = *sockets_.find(id);
  enable(fd.get(), SOL_SOCKET, SO_RXQ_OVFL);
  socket.overflowed = dropsSoFar(fd.get());
  socket.fd = std::move(fd);
  socket.maxBytes = maxBytes;
  socket.isListener = isListener;
  return id;
}

int DatagramSockets::setReceiving(Id id, bool receives) {
  Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->receives == receives) return 0;
  const int error = receives ? epoll_.add(socket->fd.get(), EPOLLIN, static_cast<uint32_t>(id) & kEpollKeyMask)
                             : epoll_.remove(socket->fd.get());
  if (error == 0) socket->receives = receives;
  return error;
}

void DatagramSockets::remove(Id id) {
  Socket* socket = sockets_.find(id);
  if (socket == nullptr) return;
  // Other descriptors may refer to the socket, so closing this one does not remove it from the set.
  if (socket->receives) epoll_.remove(socket->fd.get());
  sockets_.release(id);
  if (serving_) ++released_;
}

int DatagramSockets::descriptor(Id id) {
  Socket* socket = sockets_.find(id);
  return socket == nullptr ? -1 : socket->fd.get();
}

void DatagramSockets::serve() {
  if (!open_ || serving_) return;
  serving_ = true;
  const double deadline = nowMs(CLOCK_MONOTONIC) + kTurnMs;
  for (int round = 0; open_ && round < kRounds; ++round) {
    const int count = epoll_wait(epoll_.fd(), epollEvents_.data(), kEpollEvents, 0);
    bool hasMore = count == kEpollEvents;
    for (int i = 0; open_ && i < count; ++i) {
      const Id id = static_cast<Id>(epollEvents_[static_cast<size_t>(i)].data.u64);
      Socket* socket = sockets_.find(id);
      if (socket == nullptr || !socket->receives) continue;
      if (!hasRoom(aligned(socket->maxBytes))) {
        deliver();
        if (!open_) break;
        socket = sockets_.find(id);
        if (socket == nullptr || !socket->receives) continue;
      }
      if (receive(id, *socket)) hasMore = true;
    }
    deliver();
    // Level-triggered: what is left is reported in the next iteration of the loop.
    if (!hasMore || nowMs(CLOCK_MONOTONIC) > deadline) break;
  }
  serving_ = false;
}

bool DatagramSockets::hasRoom(uint32_t slot) const {
  return eventCount_ + 3 <= arrays_.maxEvents && used_ + slot <= arrays_.receiveBytes;
}

bool DatagramSockets::receive(Id id, Socket& socket) {
  const uint32_t slot = aligned(socket.maxBytes);
  // A datagram may come with a Dropped event, and an Error event may follow the last one.
  const uint32_t most = std::min({kMessages, (arrays_.receiveBytes - used_) / slot,
                                  (arrays_.maxEvents - eventCount_ - 1) / 2});
  mmsghdr messages[kMessages];
  iovec ranges[kMessages];
  sockaddr_storage peers[kMessages];
  ReceiveControl controls[kMessages];
  for (uint32_t i = 0; i < most; ++i) {
    ranges[i] = {arrays_.memory + used_ + i * slot, socket.maxBytes};
    msghdr& header = messages[i].msg_hdr;
    header = {};
    header.msg_iov = &ranges[i];
    header.msg_iovlen = 1;
    header.msg_control = controls[i].bytes;
    header.msg_controllen = sizeof controls[i].bytes;
    if (!socket.isListener) continue;
    header.msg_name = &peers[i];
    header.msg_namelen = sizeof peers[i];
  }
  int count;
  do count = recvmmsg(socket.fd.get(), messages, most, MSG_DONTWAIT, nullptr);
  while (count < 0 && errno == EINTR);
  if (count < 0) {
    if (errno == EAGAIN) return false;
    addEvent(id, DatagramEvent::Error, 0, static_cast<uint32_t>(errno));
    return true;
  }
  // Most datagrams are much shorter than their slots: without the gaps, more of them fit in a batch.
  for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
    uint8_t* place = arrays_.memory + used_;
    if (place != ranges[i].iov_base) memmove(place, ranges[i].iov_base, std::min(messages[i].msg_len, socket.maxBytes));
    addDatagram(id, socket, messages[i], used_);
    used_ += aligned(messages[i].msg_len);
  }
  return static_cast<uint32_t>(count) == most;
}

void DatagramSockets::addDatagram(Id id, Socket& socket, const mmsghdr& message, uint32_t offset) {
  msghdr header = message.msg_hdr;
  uint32_t overflowed = socket.overflowed;
  uint32_t dropped = 0;
  if (findOverflow(header, overflowed)) dropped = overflowed - std::exchange(socket.overflowed, overflowed);
  const bool isTruncated = (header.msg_flags & MSG_TRUNC) != 0;
  if (isTruncated) ++dropped;
  if (dropped > 0) addEvent(id, DatagramEvent::Dropped, 0, dropped);
  if (isTruncated) return;
  int32_t* record = arrays_.events + eventCount_ * kStride;
  addEvent(id, DatagramEvent::Datagram, offset, message.msg_len);
  if (!socket.isListener) return;
  writePeer(*static_cast<const sockaddr_storage*>(header.msg_name), record + kPeerWord);
  writeLocal(header, record + kLocalWord);
}

void DatagramSockets::addEvent(Id id, DatagramEvent kind, uint32_t offset, uint32_t length) {
  int32_t* record = arrays_.events + eventCount_++ * kStride;
  record[0] = id;
  record[1] = static_cast<int32_t>(kind);
  record[2] = static_cast<int32_t>(offset);
  record[3] = static_cast<int32_t>(length);
}

void DatagramSockets::deliver() {
  const uint32_t count = std::exchange(eventCount_, 0);
  used_ = 0;
  if (count > 0) handler_.handle(count);
  released_ = 0;
}

bool DatagramSockets::flush(uint32_t count) {
  bool isValid = true;
  count = std::min(count, arrays_.maxSends);
  for (uint32_t first = 0; first < count;) {
    const int32_t* record = arrays_.sends + first * kStride;
    const auto offset = static_cast<uint32_t>(record[2]);
    const auto length = static_cast<uint32_t>(record[3]);
    if (offset > arrays_.memoryBytes || length > arrays_.memoryBytes - offset) {
      arrays_.sends[first++ * kStride + 1] = EINVAL;
      isValid = false;
      continue;
    }
    uint32_t last = first + 1;
    while (last < count && last - first < kMessages && arrays_.sends[last * kStride] == record[0]) ++last;
    first = sendGroup(first, last);
  }
  return isValid;
}

// Sends the records of one socket from `first` to before `last`. Returns the index of the first record that was not handled.
uint32_t DatagramSockets::sendGroup(uint32_t first, uint32_t last) {
  Socket* socket = open_ ? sockets_.find(arrays_.sends[first * kStride]) : nullptr;
  mmsghdr messages[kMessages];
  iovec ranges[kMessages];
  SocketAddress peers[kMessages];
  SourceControl sources[kMessages];
  uint32_t count = 0;
  for (; first + count < last; ++count) {
    int32_t* record = arrays_.sends + (first + count) * kStride;
    record[1] = EBADF;
    const auto offset = static_cast<uint32_t>(record[2]);
    const auto length = static_cast<uint32_t>(record[3]);
    if (offset > arrays_.memoryBytes || length > arrays_.memoryBytes - offset) break;
    ranges[count] = {arrays_.memory + offset, length};
    msghdr& header = messages[count].msg_hdr;
    header = {};
    header.msg_iov = &ranges[count];
    header.msg_iovlen = 1;
    if (readPeer(record + kPeerWord, peers[count])) {
      header.msg_name = &peers[count].storage;
      header.msg_namelen = peers[count].length;
    }
    setSource(record + kLocalWord, sources[count], header);
  }
  if (socket == nullptr) return first + count;
  for (uint32_t at = 0; at < count;) {
    int sent;
    do sent = sendmmsg(socket->fd.get(), messages + at, count - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    const int error = sent < 0 ? errno : 0;
    const uint32_t done = sent < 0 ? 1 : static_cast<uint32_t>(sent);
    for (uint32_t i = 0; i < done; ++i) arrays_.sends[(first + at + i) * kStride + 1] = error;
    at += done;
  }
  return first + count;
}

}  // namespace baton
