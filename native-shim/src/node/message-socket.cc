#include "node/message-socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>

#include "node/values.h"
#include "system/message.h"

namespace baton {
namespace {

constexpr napi_type_tag kTag = {0x6261746f6e2d6d65, 0x73736167652d736f};

// Messages that are handled before other handles of the loop are served.
constexpr int kMaxPerTurn = 64;

napi_value makeCredentials(napi_env env, const ucred* credentials) {
  napi_value made;
  if (credentials == nullptr) {
    napi_get_undefined(env, &made);
    return made;
  }
  const auto number = [env](double value) {
    napi_value one;
    napi_create_double(env, value, &one);
    return one;
  };
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "pid", number(credentials->pid));
  napi_set_named_property(env, made, "uid", number(credentials->uid));
  napi_set_named_property(env, made, "gid", number(credentials->gid));
  return made;
}

}  // namespace

napi_value MessageSocket::create(napi_env env, int fd, napi_value events, bool isConversation,
                                 const napi_property_descriptor* methods, size_t count) {
  int type = 0;
  socklen_t typeLength = sizeof type;
  // An untrusted peer may send sockets of other types, whose end would never be noticed.
  if (isConversation && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &typeLength) != 0) {
    return throwErrno(env, "watchMessages", errno);
  }
  if (isConversation && type != SOCK_SEQPACKET) return throwErrno(env, "watchMessages", EPROTOTYPE);
  napi_value wrapper;
  if (napi_create_object(env, &wrapper) != napi_ok ||
      napi_define_properties(env, wrapper, count, methods) != napi_ok ||
      napi_type_tag_object(env, wrapper, &kTag) != napi_ok) {
    return nullptr;
  }
  auto* socket = new (std::nothrow) MessageSocket(env);
  if (socket == nullptr) return throwErrno(env, "watchMessages", ENOMEM);
  const auto collected = [](napi_env, void* self, void*) {
    auto* unused = static_cast<MessageSocket*>(self);
    unused->wrapped_ = false;
    unused->deleteWhenUnused();
  };
  if (napi_wrap(env, wrapper, socket, collected, nullptr, nullptr) != napi_ok) {
    delete socket;
    return nullptr;
  }
  socket->wrapped_ = true;
  socket->fd_ = Descriptor(fd);
  if (socket->open(events)) return wrapper;
  // The caller still owns the descriptor.
  socket->fd_.release();
  return nullptr;
}

MessageSocket* MessageSocket::from(napi_env env, napi_value self) {
  bool ours = false;
  void* socket = nullptr;
  if (napi_check_object_type_tag(env, self, &kTag, &ours) == napi_ok && ours) napi_unwrap(env, self, &socket);
  if (socket == nullptr) throwType(env, "called on something that is not a message socket");
  return static_cast<MessageSocket*>(socket);
}

bool MessageSocket::open(napi_value events) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env_, &loop) != napi_ok) return false;
  const int error = uv_poll_init(loop, &poll_, fd_.get());
  if (error != 0) {
    throwErrno(env_, "watchMessages", -error);
    return false;
  }
  poll_.data = this;
  polled_ = open_ = true;
  int type = 0;
  socklen_t typeLength = sizeof type;
  getsockopt(fd_.get(), SOL_SOCKET, SO_TYPE, &type, &typeLength);
  isMeeting_ = type == SOCK_DGRAM;
  keepReserve();
  napi_create_reference(env_, events, 1, &events_);
  napi_add_async_cleanup_hook(
      env_,
      [](napi_async_cleanup_hook_handle hook, void* self) {
        auto* socket = static_cast<MessageSocket*>(self);
        socket->hook_ = hook;
        socket->close();
      },
      this, &hook_);
  watch(UV_READABLE);
  return true;
}

void MessageSocket::watch(int events) {
  uv_poll_start(&poll_, events, [](uv_poll_t* poll, int status, int ready) {
    auto* socket = static_cast<MessageSocket*>(poll->data);
    if (status < 0) {
      const HandleScope scope(socket->env_);
      // The error is reported before the peer's last messages if the peer closed with unread messages.
      while (socket->open_ && socket->receiveOne()) {
      }
      socket->reportEnd(-status);
    } else {
      socket->serve(ready);
    }
  });
}

void MessageSocket::serve(int events) {
  const HandleScope scope(env_);
  if ((events & UV_WRITABLE) != 0) {
    watch(UV_READABLE);
    call("onWritable", 0, nullptr);
  }
  for (int count = 0; (events & UV_READABLE) != 0 && open_ && count < kMaxPerTurn; count++) {
    if (!receiveOne()) return;
  }
}

// Returns false if there is nothing more to receive.
bool MessageSocket::receiveOne() {
  // One buffer per thread suffices: each message is handled before the next one is received.
  static thread_local char bytes[kMaxMessageBytes];
  ReceivedMessage message;
  // At the descriptor limit, a received descriptor takes the place of the reserved one.
  reserve_.close();
  const int error = message.receive(fd_.get(), bytes);
  keepReserve();
  if (error != 0) {
    // The peer closed with unread messages: its own messages can still be received, then its end.
    if (error == EINTR || error == ECONNRESET) return true;
    if (error != EAGAIN) reportEnd(error);
    return false;
  }
  const size_t fdCount = message.descriptorCount();
  if (message.loss() != 0) {
    const napi_value made[] = {makeInt(env_, message.loss()), makeCredentials(env_, message.credentials())};
    // Any process may send datagrams, and a loss affects only its sender. The peer of a conversation relies on its messages, unless the
    // owner handles onLost.
    if (call("onLost", 2, made) || isMeeting_) return true;
    reportEnd(message.loss());
    return false;
  }
  if (message.length() == 0 && fdCount == 0 && !isMeeting_) {
    reportEnd(0);
    return false;
  }
  napi_value fds;
  napi_create_array_with_length(env_, fdCount, &fds);
  for (size_t i = 0; i < fdCount; i++) {
    napi_set_element(env_, fds, static_cast<uint32_t>(i), makeInt(env_, message.descriptors()[i]));
  }
  const napi_value made[] = {makeBytes(env_, bytes, message.length()), fds,
                             makeCredentials(env_, message.credentials())};
  // If the thread is ending, the descriptors stay with the message and are closed, otherwise their peers would wait forever.
  if (!call("onMessage", 3, made)) return false;
  message.releaseDescriptors();
  return true;
}

// Keeps a descriptor in reserve, so that at least one message can be received at the limit.
void MessageSocket::keepReserve() {
  if (isMeeting_ && !reserve_) reserve_ = Descriptor(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
}

void MessageSocket::reportEnd(int error) {
  if (!open_) return;
  close();
  const HandleScope scope(env_);
  const napi_value argument = makeInt(env_, error);
  call("onEnd", 1, &argument);
}

// Calls a method of the events object. An exception is reported as uncaught. Returns false if it was not called.
bool MessageSocket::call(const char* name, size_t count, const napi_value* arguments) {
  napi_value events;
  napi_value function;
  if (napi_get_reference_value(env_, events_, &events) != napi_ok ||
      napi_get_named_property(env_, events, name, &function) != napi_ok) {
    return false;
  }
  napi_valuetype type = napi_undefined;
  if (napi_typeof(env_, function, &type) != napi_ok || type != napi_function) return false;
  if (napi_make_callback(env_, nullptr, events, function, count, arguments, nullptr) == napi_ok) return true;
  napi_value exception;
  if (napi_get_and_clear_last_exception(env_, &exception) == napi_ok) napi_fatal_exception(env_, exception);
  return true;
}

int MessageSocket::send(const sockaddr* to, socklen_t toLength, const void* bytes, size_t length, const int* fds,
                        size_t fdCount) {
  if (!open_) return EBADF;
  const int error = sendMessage(fd_.get(), to, toLength, bytes, length, fds, fdCount);
  // ETOOMANYREFS (too many descriptors in flight) clears as the peer receives them, but there is no notification of that.
  if (error == EAGAIN) watch(UV_READABLE | UV_WRITABLE);
  return error;
}

void MessageSocket::close() {
  if (!open_) return;
  open_ = false;
  // Before the descriptor is closed: libuv removes it from its epoll set here.
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_),
           [](uv_handle_t* handle) { static_cast<MessageSocket*>(handle->data)->handleClosed(); });
  fd_.close();
  reserve_.close();
}

void MessageSocket::handleClosed() {
  polled_ = false;
  napi_delete_reference(env_, events_);
  if (hook_ != nullptr) napi_remove_async_cleanup_hook(hook_);
  deleteWhenUnused();
}

void MessageSocket::deleteWhenUnused() {
  if (!wrapped_ && !polled_) delete this;
}

}  // namespace baton
