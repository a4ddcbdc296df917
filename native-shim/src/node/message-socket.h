// One end of a conversation in messages over a Unix socket: datagrams to meet, sequenced packets to talk. Descriptors
// travel with a message. Polled by the thread's own libuv loop.
#pragma once

#include <node_api.h>
#include <sys/socket.h>
#include <uv.h>

#include "system/descriptor.h"

namespace baton {

class MessageSocket final {
 public:
  // Takes over `fd` and wraps the socket; nullptr after throwing. `events` has onMessage, onWritable, onLost and onEnd.
  static napi_value create(napi_env env, int fd, napi_value events, bool isConversation,
                           const napi_property_descriptor* methods, size_t count);
  // The socket behind a wrapper object; nullptr after throwing, when `self` is something else.
  static MessageSocket* from(napi_env env, napi_value self);

  // 0, EAGAIN (writable is reported then), or another errno.
  int send(const sockaddr* to, socklen_t toLength, const void* bytes, size_t length, const int* fds, size_t fdCount);
  void close();

 private:
  explicit MessageSocket(napi_env env) : env_(env) {}
  ~MessageSocket() = default;

  bool open(napi_value events);
  void watch(int events);
  void serve(int events);
  bool receiveOne();
  void reportEnd(int error);
  void keepReserve();
  bool call(const char* name, size_t count, const napi_value* arguments);
  void handleClosed();
  void deleteWhenUnused();

  napi_env env_;
  Descriptor fd_;
  Descriptor reserve_;  // makes room for one that comes; for datagrams alone
  uv_poll_t poll_{};
  napi_ref events_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  bool wrapped_ = false;
  bool polled_ = false;  // the handle is open or closing
  bool open_ = false;
  bool meets_ = false;  // datagrams, from anybody
};

}  // namespace baton
