// One message over a Unix socket, with its descriptors and its sender's credentials.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>

namespace baton {

// Limits of a message's length and its descriptors (the kernel's own limit is 253).
constexpr size_t kMaxMessageBytes = 64 * 1024;
constexpr size_t kMaxMessageDescriptors = 64;

class ReceivedMessage {
 public:
  ReceivedMessage() = default;
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;
  ~ReceivedMessage() { closeDescriptors(); }

  // Receives the next message into `bytes` (kMaxMessageBytes) without waiting. Returns 0 or errno.
  int receive(int fd, void* bytes);

  size_t length() const { return length_; }
  // Closed with this object unless releaseDescriptors() transfers them to the caller.
  const int* descriptors() const { return fds_; }
  size_t descriptorCount() const { return fdCount_; }
  void releaseDescriptors() { fdCount_ = 0; }
  // nullptr if the kernel provides no credentials.
  const ucred* credentials() const { return hasCredentials_ ? &credentials_ : nullptr; }
  // 0, or why the message was truncated; its descriptors are then closed. EMSGSIZE: too many bytes or descriptors; EMFILE: this process has
  // reached its descriptor limit.
  int loss() const { return loss_; }

 private:
  // Without credentials there is room for more descriptors than a message may have.
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

// Sends one whole message with copies of the descriptors, without waiting. `to` is nullptr on a connected socket. Returns 0 or errno.
int sendMessage(int fd, const sockaddr* to, socklen_t toLength, const void* bytes, size_t length, const int* fds,
                size_t fdCount);

}  // namespace baton
