// A Unix socket for messages: a meeting socket for datagrams, or one end of a SOCK_SEQPACKET conversation. Messages can carry descriptors.
// The thread's libuv loop polls it.
#pragma once

#include <node_api.h>
#include <sys/socket.h>
#include <uv.h>

#include "system/descriptor.h"

namespace baton {

class MessageSocket final {
 public:
  // Takes over `fd` and returns a wrapper object; nullptr after throwing. `events` has onMessage, onWritable, onLost and onEnd.
  static napi_value create(napi_env env, int fd, napi_value events, bool isConversation,
                           const napi_property_descriptor* methods, size_t count);
  // Returns the socket of a wrapper object; throws and returns nullptr for any other object.
  static MessageSocket* from(napi_env env, napi_value self);

  // Returns 0, EAGAIN (onWritable follows), or another errno.
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
  Descriptor reserve_;  // makes room for a received descriptor; only on meeting sockets
  uv_poll_t poll_{};
  napi_ref events_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  bool wrapped_ = false;
  bool polled_ = false;  // the handle is open or closing
  bool open_ = false;
  bool isMeeting_ = false;  // datagrams from any process
};

}  // namespace baton
