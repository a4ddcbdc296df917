#include "transport/socket-stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/socket-calls.h"

namespace baton {
namespace {

// Below this, copying into one piece is cheaper than the kernel's walk over an iovec.
constexpr size_t kCopyLimit = 8 * 1024;
// Plain bytes that are encrypted at once.
constexpr uint32_t kEncryptBytes = 256 * 1024;

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
  if (tls_ != nullptr) {
    const TlsSession::Received got = tls_->read(fd_.get(), static_cast<uint8_t*>(to), length);
    return {got.count, got.emptied};
  }
  if (isLocal_) return receiveLocal(fd_.get(), to, length);
  const ssize_t count = receiveBytes(fd_.get(), to, length, 0);
  return {count, count < static_cast<ssize_t>(length)};
}

ssize_t SocketStream::peek(void* to, size_t length) { return receiveBytes(fd_.get(), to, length, MSG_PEEK); }

ssize_t SocketStream::discard() {
  // For TCP, MSG_TRUNC drops the bytes without copying them.
  static thread_local uint8_t scratch[64 * 1024];
  return receiveBytes(fd_.get(), scratch, sizeof scratch, MSG_TRUNC);
}

ssize_t SocketStream::write(iovec* ranges, int count, size_t total, bool isLast) {
  if (tls_ != nullptr) return tls_->write(fd_.get(), ranges, count, isLast);
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
  return count == 1 ? sendBytes(fd_.get(), from, total) : sendRanges(fd_.get(), ranges, count);
}

int SocketStream::flush() {
  if (tls_ != nullptr) {
    const int error = tls_->flush(fd_.get());
    if (error != 0) return error;
  }
  while (!pending_.empty()) {
    iovec range{const_cast<uint8_t*>(pending_.data()), pending_.size()};
    if (tls_ != nullptr) range.iov_len = std::min<size_t>(range.iov_len, kEncryptBytes);
    const ssize_t taken = write(&range, 1, range.iov_len);
    if (taken < 0) return static_cast<int>(-taken);
    pending_.consume(static_cast<uint32_t>(taken));
    // After a short send the kernel reports when there is room. With TLS only its own unsent bytes show that.
    if (tls_ == nullptr) return 0;
  }
  return 0;
}

bool SocketStream::startTls(std::shared_ptr<TlsContext> context, TlsClientOptions options, int32_t connection,
                            TlsObserver& observer) {
  tls_ = TlsSession::create(std::move(context), std::move(options), connection, observer, std::move(pending_));
  return tls_ != nullptr;
}

int SocketStream::unacknowledged() const {
  int queued = 0;
  ioctl(fd_.get(), SIOCOUTQ, &queued);
  return queued;
}

void SocketStream::endSending() { shutdown(fd_.get(), SHUT_WR); }

void SocketStream::close() {
  if (hasUnsent()) return abort();
  if (finish()) tls_->flush(fd_.get());
  closeLocally();
}

void SocketStream::abort() {
  const linger now{1, 0};
  if (fd_) setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  closeLocally();
}

void SocketStream::closeLocally() {
  fd_.close();
  pending_.clear();
  tls_.reset();
}

}  // namespace baton
