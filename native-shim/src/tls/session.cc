#include "tls/session.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "system/socket-calls.h"
#include "tls/errors.h"

namespace baton {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;
// Encrypted bytes are sent after this many, while they are in the processor's cache.
constexpr size_t kFlightBytes = 64 * 1024;
constexpr size_t kInputBytes = 64 * 1024;
// As BoringSSL.
constexpr uint8_t kMaxKeyUpdates = 32;
// Answers to a peer that does not read. write() leaves less than this.
constexpr uint32_t kMaxUnsentAnswers = 256 * 1024;
// Receives of one call without a plain byte. A peer can send records without data faster than they are read.
constexpr int kMaxBareReceives = 4;
// A handshake makes five lines of at most 200 bytes; their reader takes them at its end.
constexpr size_t kMaxKeys = 4096;
constexpr char kLongName[] = "server name too long";
// CONTEXT_NOT_READY of src/io/shim.ts.
constexpr char kUnready[] = "context not ready";
// As OpenSSL describes a handshake that the callback for the ClientHello has refused.
constexpr char kStapleMissing[] = "callback failed";

// What OpenSSL reads and writes during one call.
struct Flow {
  const uint8_t* input = nullptr;
  const uint8_t* inputEnd = nullptr;
  std::vector<uint8_t> output;
};
thread_local Flow flow;

int readFlow(BIO* bio, char* to, int length) {
  BIO_clear_retry_flags(bio);
  const auto left = static_cast<int>(flow.inputEnd - flow.input);
  if (left == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const int count = std::min(left, length);
  memcpy(to, flow.input, static_cast<size_t>(count));
  flow.input += count;
  return count;
}

int writeFlow(BIO* bio, const char* from, int length) {
  BIO_clear_retry_flags(bio);
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  flow.output.insert(flow.output.end(), bytes, bytes + length);
  return length;
}

long controlFlow(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

int createFlow(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* flowMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "baton flow");
    BIO_meth_set_read(made, readFlow);
    BIO_meth_set_write(made, writeFlow);
    BIO_meth_set_ctrl(made, controlFlow);
    BIO_meth_set_create(made, createFlow);
    return made;
  }();
  return method;
}

}  // namespace

// Gives OpenSSL the input of a session for one call, and keeps what is left of it.
class TlsSession::Io {
 public:
  explicit Io(TlsSession& session) : session_(session) {
    ERR_clear_error();
    flow.input = session.input_.data();
    flow.inputEnd = flow.input + session.input_.size();
    flow.output.clear();
  }
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  // Keeps unread input, and output that was not sent.
  ~Io() {
    keepInput();
    const iovec rest{flow.output.data() + sent_, flow.output.size() - sent_};
    if (rest.iov_len > 0 && !session_.unsent_.append(&rest, 1, 0, rest.iov_len)) session_.fail();
    if (flow.output.capacity() > 4 * kFlightBytes) std::vector<uint8_t>().swap(flow.output);
    else flow.output.clear();
    flow.input = flow.inputEnd = nullptr;
  }

  // Called when OpenSSL has read all input. Returns the count of recv().
  ssize_t receive(int fd, size_t most) {
    static thread_local uint8_t received[kInputBytes];
    session_.input_.clear();
    isKept_ = false;
    const size_t length = std::min(most, sizeof received);
    const ssize_t count = receiveBytes(fd, received, length, 0);
    flow.input = received;
    flow.inputEnd = received + std::max<ssize_t>(count, 0);
    isShort_ = count < static_cast<ssize_t>(length);
    return count;
  }
  // Whether the last receive() has emptied the socket.
  bool isShort() const { return isShort_; }

  void dropOutput() {
    flow.output.clear();
    sent_ = 0;
  }
  size_t unsentOutput() const { return flow.output.size() - sent_; }

  // Sends output after the unsent bytes. Returns 0 or an errno; EAGAIN: some is left.
  int send(int fd) {
    if (!session_.unsent_.empty()) return EAGAIN;
    const size_t length = unsentOutput();
    if (length == 0) return 0;
    const ssize_t count = sendBytes(fd, flow.output.data() + sent_, length);
    if (count < 0) return static_cast<int>(-count);
    sent_ += static_cast<size_t>(count);
    if (unsentOutput() > 0) return EAGAIN;
    flow.output.clear();
    sent_ = 0;
    return 0;
  }

 private:
  void keepInput() {
    const auto left = static_cast<size_t>(flow.inputEnd - flow.input);
    if (isKept_) {
      session_.input_.consume(session_.input_.size() - static_cast<uint32_t>(left));
      return;
    }
    const iovec rest{const_cast<uint8_t*>(flow.input), left};
    // Without memory the stream has a hole.
    if (left > 0 && !session_.input_.append(&rest, 1, 0, left)) session_.fail();
  }

  TlsSession& session_;
  size_t sent_ = 0;
  bool isKept_ = true;  // the input is that of the session
  bool isShort_ = false;
};

std::unique_ptr<TlsSession> TlsSession::create(std::shared_ptr<TlsContext> context, TlsClientOptions options,
                                               int32_t connection, TlsObserver& observer, PendingQueue unsent) {
  ERR_clear_error();
  SslHandle ssl(SSL_new(context->ssl()));
  BIO* bio = ssl == nullptr ? nullptr : BIO_new(flowMethod());
  if (bio == nullptr) return nullptr;
  SSL_set_bio(ssl.get(), bio, bio);
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context), std::move(ssl), connection, observer));
  SSL* made = session->ssl();
  SSL_set_app_data(made, session.get());
  session->unsent_ = std::move(unsent);
  if (session->context_->isServer()) {
    SSL_set_accept_state(made);
    return session;
  }
  SSL_set_connect_state(made);
  if (!options.serverName.empty() && SSL_set_tlsext_host_name(made, options.serverName.c_str()) != 1) {
    // The host would choose a certificate without knowing the name.
    session->hasFailed_ = true;
    session->failure_ = kLongName;
  }
  if (!options.alpn.empty() && (options.replacesAlpn || session->context_->settings().alpn.empty())) {
    SSL_set_alpn_protos(made, reinterpret_cast<const unsigned char*>(options.alpn.data()),
                        static_cast<unsigned>(options.alpn.size()));
  }
  session->sessionGroup_ = std::move(options.sessionGroup);
  session->context_->clientSessions().offer(made);
  return session;
}

TlsSession::~TlsSession() = default;

TlsSession::Step TlsSession::handshake(int fd, int& error) {
  if (!context_->isReady()) {
    hasFailed_ = true;
    failure_ = kUnready;
  }
  if (hasFailed_) return Step::Failed;
  Io io(*this);
  for (int receives = 0;; ++receives) {
    const int done = SSL_do_handshake(ssl());
    const int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl(), done);
    if (done != 1 && why != SSL_ERROR_WANT_READ) fail();
    error = io.send(fd);
    if (error != 0 && error != EAGAIN) return Step::Broken;
    if (hasFailed_) return Step::Failed;
    if (done == 1) {
      isSecured_ = true;
      return Step::Done;
    }
    if (receives == kMaxBareReceives) return Step::More;
    const ssize_t count = io.receive(fd, kInputBytes);
    if (count == -EAGAIN) return Step::Wait;
    error = static_cast<int>(-count);
    if (count < 0) return Step::Broken;
    hasEnded_ = count == 0;
    if (hasEnded_) return Step::Ended;
  }
}

TlsSession::Received TlsSession::read(int fd, uint8_t* to, size_t length) {
  if (hasFailed_) return {-EPROTO, true};
  if (error_ != 0) return {-error_, true};
  Io io(*this);
  size_t total = 0;
  bool emptied = false;
  bool isShareUsed = false;
  int receives = 0;
  ssize_t end = -EAGAIN;  // why nothing more can be read
  while (total < length) {
    const int count = SSL_read(ssl(), to + total, static_cast<int>(std::min<size_t>(length - total, INT32_MAX)));
    if (count > 0) {
      total += static_cast<size_t>(count);
      keyUpdates_ = 0;
      continue;
    }
    const int why = SSL_get_error(ssl(), count);
    if (why == SSL_ERROR_ZERO_RETURN) hasEnded_ = true;
    if (why != SSL_ERROR_ZERO_RETURN && why != SSL_ERROR_WANT_READ) fail();
    if (hasFailed_) end = -EPROTO;
    else if (hasEnded_) end = 0;
    // After records without data, an end that epoll has reported already can be next.
    if (hasFailed_ || hasEnded_ || (emptied && total > 0)) break;
    isShareUsed = receives++ == kMaxBareReceives;
    if (isShareUsed) break;
    // Plain bytes are fewer than their records, so that all of these fit after those before them.
    const ssize_t got = io.receive(fd, length - total);
    if (got < 0) {
      end = got;
      break;
    }
    hasEnded_ = got == 0;
    emptied = got > 0 && io.isShort();
  }
  // Nothing follows close_notify.
  if (hasFinished_) io.dropOutput();
  const int error = io.send(fd);
  if (error != 0 && error != EAGAIN && end == -EAGAIN) end = -error;
  if (unsent_.size() + io.unsentOutput() > kMaxUnsentAnswers) {
    fail();
    end = -EPROTO;
  }
  if (end < 0 && end != -EAGAIN && !hasFailed_) error_ = static_cast<int32_t>(-end);
  const bool isEmptied = end == -EAGAIN && !isShareUsed;
  if (total == 0) return {end, isEmptied || end != -EAGAIN};
  return {static_cast<ssize_t>(total), isEmptied && total < length};
}

bool TlsSession::hasBuffered() const { return !input_.empty() || (isSecured_ && SSL_has_pending(ssl()) == 1); }

ssize_t TlsSession::write(int fd, const iovec* ranges, int count, bool isLast) {
  if (!isSecured_ || !unsent_.empty()) return hasFailed_ ? -EPROTO : -EAGAIN;
  if (hasFailed_ || hasFinished_) return -EPIPE;
  Io io(*this);
  uint8_t joined[kRecordBytes];
  size_t taken = 0;
  size_t filled = 0;  // bytes in `joined`
  const auto encrypt = [&](const uint8_t* from, size_t length) {
    taken += length;
    if (SSL_write(ssl(), from, static_cast<int>(length)) > 0) return true;
    fail();
    return false;
  };
  for (int i = 0; i < count; ++i) {
    const auto* from = static_cast<const uint8_t*>(ranges[i].iov_base);
    size_t left = ranges[i].iov_len;
    while (left > 0) {
      // Whole records are encrypted where they are; smaller pieces share one.
      const size_t length = std::min(left, kRecordBytes - filled);
      const bool isDirect = filled == 0 && (length == kRecordBytes || i == count - 1);
      if (isDirect) {
        if (!encrypt(from, length)) return -EPROTO;
      } else {
        memcpy(joined + filled, from, length);
        filled += length;
        if (filled == kRecordBytes) {
          if (!encrypt(joined, filled)) return -EPROTO;
          filled = 0;
        }
      }
      from += length;
      left -= length;
      if (io.unsentOutput() < kFlightBytes) continue;
      const int error = io.send(fd);
      if (error == EAGAIN) return static_cast<ssize_t>(taken);
      if (error != 0) return -error;
    }
  }
  if (filled > 0 && !encrypt(joined, filled)) return -EPROTO;
  // With the last bytes: a segment of its own would cost more than the alert.
  if (isLast) {
    hasFinished_ = true;
    SSL_shutdown(ssl());
  }
  const int error = io.send(fd);
  return error == 0 || error == EAGAIN ? static_cast<ssize_t>(taken) : -error;
}

int TlsSession::flush(int fd) {
  while (!unsent_.empty()) {
    const ssize_t count = sendBytes(fd, unsent_.data(), unsent_.size());
    if (count < 0) return static_cast<int>(-count);
    unsent_.consume(static_cast<uint32_t>(count));
  }
  return 0;
}

bool TlsSession::finish() {
  if (!isSecured_ || hasFailed_ || hasFinished_) return false;
  hasFinished_ = true;
  Io io(*this);
  SSL_shutdown(ssl());
  return io.unsentOutput() > 0;
}

void TlsSession::fail() {
  if (hasFailed_) return;
  hasFailed_ = true;
  failure_ = takeTlsErrors();
  // Of several certificates none was usable: OpenSSL knows of no other reason.
  if (staple_ == TlsStaple::Failed) failure_ = kStapleMissing;
}

void TlsSession::keepKey(const SSL* ssl, const char* line) {
  std::string& keys = of(ssl)->keys_;
  if (keys.size() >= kMaxKeys) return;
  keys += line;
  keys += '\n';
}

TlsStaple TlsSession::staple() const {
  // A resumed session presents no certificate, of which there may be several.
  if (!requestsStaple_ || presented_ != nullptr || !isSecured_) return staple_;
  const TlsIdentity* unseen = context_->identities().ofName(SSL_get_servername(ssl(), TLSEXT_NAMETYPE_host_name));
  if (unseen == nullptr) return TlsStaple::NotRequested;
  const TlsStaple decided = baton::decideStaple(unseen->staple, unseen->ocspPolicy);
  return decided == TlsStaple::Failed ? TlsStaple::Omitted : decided;
}

bool TlsSession::decideStaple(const TlsIdentity& presented) {
  if (!requestsStaple_) return true;
  presented_ = &presented;
  staple_ = baton::decideStaple(presented.staple, presented.ocspPolicy);
  return staple_ != TlsStaple::Failed;
}

// OpenSSL's callback, which comes again after HelloRetryRequest.
int TlsSession::observeHello(SSL* ssl, int* alert, void*) {
  TlsSession* session = of(ssl);
  const unsigned char* extension = nullptr;
  size_t length = 0;
  session->requestsStaple_ = SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_status_request, &extension, &length) == 1;
  const TlsIdentity* only = session->context_->identities().only();
  if (only == nullptr || session->decideStaple(*only)) return SSL_CLIENT_HELLO_SUCCESS;
  *alert = SSL_AD_HANDSHAKE_FAILURE;
  return SSL_CLIENT_HELLO_ERROR;
}

// OpenSSL's callback, after the choice of the certificate.
int TlsSession::sendStaple(SSL* ssl, void*) {
  const TlsSession* session = of(ssl);
  if (session->staple_ != TlsStaple::Sent) return SSL_TLSEXT_ERR_NOACK;
  const std::string& bytes = session->presented_->staple.bytes;
  auto* copy = static_cast<unsigned char*>(OPENSSL_memdup(bytes.data(), bytes.size()));
  if (copy == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(bytes.size()));
  return SSL_TLSEXT_ERR_OK;
}

// TLS 1.3 lets a peer request any number of key updates.
void TlsSession::observeMessage(int isWrite, int, int contentType, const void* bytes, size_t length, SSL* ssl, void*) {
  if (isWrite != 0 || contentType != SSL3_RT_HANDSHAKE || length == 0) return;
  if (*static_cast<const uint8_t*>(bytes) != SSL3_MT_KEY_UPDATE) return;
  TlsSession* session = of(ssl);
  if (session != nullptr && ++session->keyUpdates_ > kMaxKeyUpdates && !session->hasFailed_) {
    session->hasFailed_ = true;
    session->failure_ = "too many key updates";
  }
}

}  // namespace baton
