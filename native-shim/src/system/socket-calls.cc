#include "system/socket-calls.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace baton {
namespace {

constexpr int kSendFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

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

}  // namespace

ssize_t receiveBytes(int fd, void* to, size_t length, int flags) {
  return repeated([=] { return receiveCall(fd, to, length, MSG_DONTWAIT | flags); });
}

ssize_t sendBytes(int fd, const void* from, size_t length) {
  return repeated([=] { return sendCall(fd, from, length, kSendFlags); });
}

ssize_t sendRanges(int fd, iovec* ranges, int count) {
  msghdr message{};
  message.msg_iov = ranges;
  message.msg_iovlen = static_cast<size_t>(count);
  return repeated([&] { return sendmsg(fd, &message, kSendFlags); });
}

}  // namespace baton
