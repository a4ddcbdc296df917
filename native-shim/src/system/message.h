// One message over a Unix socket, with what travels beside its bytes: descriptors, and who sent it.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

namespace baton {

// The longest message, and the most descriptors that travel with one (the kernel's own limit is 253).
constexpr size_t kMaxMessageBytes = 64 * 1024;
constexpr size_t kMaxMessageDescriptors = 64;

class ReceivedMessage {
 public:
  ReceivedMessage() = default;
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;
  ~ReceivedMessage() { closeDescriptors(); }

  // Receives the next one, its bytes into `bytes` (kMaxMessageBytes), without waiting. 0 or errno.
  int receive(int fd, void* bytes);

  size_t length() const { return length_; }
  // Open until they are released, which leaves them to the caller.
  const int* descriptors() const { return fds_; }
  size_t descriptorCount() const { return fdCount_; }
  void releaseDescriptors() { fdCount_ = 0; }
  // nullptr where the kernel vouches for nobody.
  const ucred* credentials() const { return hasCredentials_ ? &credentials_ : nullptr; }
  // 0, or why something was cut off, and all descriptors are closed. EMSGSIZE: bytes or descriptors are too many; EMFILE: this
  // process may open no more.
  int loss() const { return loss_; }

 private:
  // Where no credentials come, more descriptors have room than a message may have.
  static constexpr size_t kControlBytes = CMSG_SPACE(kMaxMessageDescriptors * sizeof(int)) + CMSG_SPACE(sizeof(ucred));

  void readControl(msghdr& message);
  void closeDescriptors();

  size_t length_ = 0;
  int fds_[kControlBytes / sizeof(int)];
  size_t fdCount_ = 0;
  ucred credentials_{};
  bool hasCredentials_ = false;
  int loss_ = 0;
};

// Sends one message whole, with copies of the descriptors, without waiting; `to` is nullptr on a connected socket. 0 or errno.
int sendMessage(int fd, const sockaddr* to, socklen_t toLength, const void* bytes, size_t length, const int* fds,
                size_t fdCount);

}  // namespace baton
