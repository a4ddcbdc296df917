#include "transport/socket-stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace baton {
namespace {

constexpr int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
// Below this, copying into one piece is cheaper than the kernel's walk over an iovec.
constexpr size_t kCopyLimit = 8 * 1024;

// recv() and send() are cancellation points: in a process with threads the C library enables and disables cancellation around each of them,
// at a cost of some 50 ns. These threads are never cancelled. AddressSanitizer intercepts only the library's calls.
#ifdef __SANITIZE_ADDRESS__
ssize_t receiveCall(int fd, void* to, size_t length, int flags) { return recv(fd, to, length, flags); }
ssize_t sendCall(int fd, const void* from, size_t length, int flags) { return send(fd, from, length, flags); }
#else
ssize_t receiveCall(int fd, void* to, size_t length, int flags) {
  return syscall(SYS_recvfrom, fd, to, length, flags, nullptr, nullptr);
}
ssize_t sendCall(int fd, const void* from, size_t length, int flags) {
  return syscall(SYS_sendto, fd, from, length, flags, nullptr, 0);
}
#endif

// Repeats a call that a signal interrupts. Returns its count, or a negative errno.
template <typename Call>
ssize_t repeated(Call call) {
  ssize_t count;
  do count = call();
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

ssize_t receive(int fd, void* to, size_t length, int flags) {
  return repeated([=] { return receiveCall(fd, to, length, MSG_DONTWAIT | flags); });
}

// Closes descriptors that arrive with the bytes; they shorten the read.
SocketStream::Received receiveLocal(int fd, void* to, size_t length) {
  iovec range{to, length};
  msghdr message{};
  message.msg_iov = &range;
  message.msg_iovlen = 1;
  const ssize_t count = repeated([&] { return recvmsg(fd, &message, MSG_DONTWAIT); });
  const bool isCut = count >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return {count, !isCut && count < static_cast<ssize_t>(length)};
}

}  // namespace

SocketStream::Received SocketStream::read(void* to, size_t length) {
  if (isLocal_) return receiveLocal(fd_.get(), to, length);
  const ssize_t count = receive(fd_.get(), to, length, 0);
  return {count, count < static_cast<ssize_t>(length)};
}

ssize_t SocketStream::peek(void* to, size_t length) { return receive(fd_.get(), to, length, MSG_PEEK); }

ssize_t SocketStream::discard() {
  // For TCP, MSG_TRUNC drops the bytes without copying them.
  static thread_local uint8_t scratch[64 * 1024];
  return receive(fd_.get(), scratch, sizeof scratch, MSG_TRUNC);
}

ssize_t SocketStream::write(iovec* ranges, int count, size_t total) {
  uint8_t joined[kCopyLimit];
  const void* from = ranges[0].iov_base;
  if (count > 1 && total <= kCopyLimit) {
    uint8_t* to = joined;
    for (int i = 0; i < count; ++i) {
      memcpy(to, ranges[i].iov_base, ranges[i].iov_len);
      to += ranges[i].iov_len;
    }
    from = joined;
    count = 1;
  }
  if (count == 1) return repeated([&] { return sendCall(fd_.get(), from, total, kSendFlags); });
  msghdr message{};
  message.msg_iov = ranges;
  message.msg_iovlen = static_cast<size_t>(count);
  return repeated([&] { return sendmsg(fd_.get(), &message, kSendFlags); });
}

int SocketStream::flush() {
  iovec range{const_cast<uint8_t*>(pending_.data()), pending_.size()};
  const ssize_t taken = write(&range, 1, range.iov_len);
  if (taken < 0) return static_cast<int>(-taken);
  pending_.consume(static_cast<uint32_t>(taken));
  return 0;
}

int SocketStream::unacknowledged() const {
  int queued = 0;
  ioctl(fd_.get(), SIOCOUTQ, &queued);
  return queued;
}

void SocketStream::endSending() { shutdown(fd_.get(), SHUT_WR); }

void SocketStream::close() {
  if (hasUnsent()) return abort();
  fd_.close();
}

void SocketStream::abort() {
  const linger now{1, 0};
  if (fd_) setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  closeLocally();
}

void SocketStream::closeLocally() {
  fd_.close();
  pending_.clear();
}

}  // namespace baton
