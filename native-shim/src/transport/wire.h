// The only places where a connection's bytes are read and written; another transport socket (TLS) goes in here.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace baton {

// recv() and send() are points at which a thread may be cancelled: in a process with threads the C library switches that on and
// off around each of them, for some 50 ns. Nobody cancels these threads. AddressSanitizer looks only into the library's calls.
#ifdef __SANITIZE_ADDRESS__
inline ssize_t receiveCall(int fd, void* to, size_t length, int flags) { return recv(fd, to, length, flags); }
inline ssize_t sendCall(int fd, const void* from, size_t length, int flags) { return send(fd, from, length, flags); }
#else
inline ssize_t receiveCall(int fd, void* to, size_t length, int flags) {
  return syscall(SYS_recvfrom, fd, to, length, flags, nullptr, nullptr);
}
inline ssize_t sendCall(int fd, const void* from, size_t length, int flags) {
  return syscall(SYS_sendto, fd, from, length, flags, nullptr, 0);
}
#endif

// Both answer as recv() and send() do: a count, 0 at the end, or -1 with errno.
inline ssize_t readBytes(int fd, void* to, size_t length) {
  ssize_t got;
  do got = receiveCall(fd, to, length, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  return got;
}

// The same, without taking the bytes away.
inline ssize_t peekBytes(int fd, void* to, size_t length) {
  ssize_t got;
  do got = receiveCall(fd, to, length, MSG_DONTWAIT | MSG_PEEK);
  while (got < 0 && errno == EINTR);
  return got;
}

// The same for a Unix socket. `isCut`: descriptors came with the bytes (and are closed), so that what follows was not read.
inline ssize_t readLocalBytes(int fd, void* to, size_t length, bool& isCut) {
  iovec range{to, length};
  msghdr message{};
  message.msg_iov = &range;
  message.msg_iovlen = 1;
  ssize_t got;
  do got = recvmsg(fd, &message, MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  isCut = got >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return got;
}

inline ssize_t writeBytes(int fd, iovec* ranges, int count, size_t total) {
  // Below this, copying into one piece is cheaper than the kernel's walk over an iovec.
  constexpr size_t kCopyLimit = 8 * 1024;
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
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
  msghdr message{};
  message.msg_iov = ranges;
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t sent;
  do sent = count == 1 ? sendCall(fd, from, total, kFlags) : sendmsg(fd, &message, kFlags);
  while (sent < 0 && errno == EINTR);
  return sent;
}

}  // namespace baton
