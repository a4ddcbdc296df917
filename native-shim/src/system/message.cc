#include "system/message.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace baton {

int ReceivedMessage::receive(int fd, void* bytes) {
  alignas(cmsghdr) char control[kControlBytes];
  iovec range{bytes, kMaxMessageBytes};
  msghdr message{};
  message.msg_iov = &range;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0) return errno;
  length_ = static_cast<size_t>(length);
  readControl(message);
  const bool isTruncated = (message.msg_flags & MSG_TRUNC) != 0;
  if (!isTruncated && (message.msg_flags & MSG_CTRUNC) == 0 && fdCount_ <= kMaxMessageDescriptors) return 0;
  loss_ = isTruncated || fdCount_ >= kMaxMessageDescriptors ? EMSGSIZE : EMFILE;
  closeDescriptors();
  return 0;
}

void ReceivedMessage::readControl(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) {
      fdCount_ = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      memcpy(fds_, CMSG_DATA(part), fdCount_ * sizeof(int));
    } else if (part->cmsg_type == SCM_CREDENTIALS) {
      memcpy(&credentials_, CMSG_DATA(part), sizeof credentials_);
      hasCredentials_ = true;
    }
  }
}

void ReceivedMessage::closeDescriptors() {
  for (size_t i = 0; i < fdCount_; i++) ::close(fds_[i]);
  fdCount_ = 0;
}

int sendMessage(int fd, const sockaddr* to, socklen_t toLength, const void* bytes, size_t length, const int* fds,
                size_t fdCount) {
  if (length > kMaxMessageBytes || fdCount > kMaxMessageDescriptors) return EMSGSIZE;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageDescriptors * sizeof(int))] = {};
  iovec range{const_cast<void*>(bytes), length};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(to);
  message.msg_namelen = toLength;
  message.msg_iov = &range;
  message.msg_iovlen = 1;
  if (fdCount > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fdCount * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fdCount * sizeof(int));
    memcpy(CMSG_DATA(part), fds, fdCount * sizeof(int));
  }
  ssize_t sent;
  do sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

}  // namespace baton
