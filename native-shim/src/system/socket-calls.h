// Non-blocking receives and sends of connected sockets. Each returns a count, or a negative errno.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace baton {

// Repeats a call that a signal interrupts. Returns its count, or a negative errno.
template <typename Call>
ssize_t repeated(Call call) {
  ssize_t count;
  do count = call();
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : count;
}

ssize_t receiveBytes(int fd, void* to, size_t length, int flags);
ssize_t sendBytes(int fd, const void* from, size_t length);
ssize_t sendRanges(int fd, iovec* ranges, int count);

}  // namespace baton
