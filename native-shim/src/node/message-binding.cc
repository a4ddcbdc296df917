// The methods of a message socket, and watchMessages().

#include <node_api.h>

#include <cerrno>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/message-socket.h"
#include "node/values.h"
#include "system/message.h"

namespace baton {
namespace {

// Reads an array of descriptors; sets `count` to their number.
bool readDescriptors(napi_env env, napi_value value, int* fds, size_t& count) {
  uint32_t length = 0;
  if (napi_get_array_length(env, value, &length) != napi_ok || length > kMaxMessageDescriptors) {
    throwType(env, "fds must be an array of at most 64 descriptors");
    return false;
  }
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    int32_t fd;
    if (napi_get_element(env, value, i, &element) != napi_ok || !readInt(env, element, "fd", 0, fd)) return false;
    fds[i] = fd;
  }
  count = length;
  return true;
}

// send(bytes, fds), or sendTo(address, bytes, fds) with `to`.
napi_value sendMessage(napi_env env, const Arguments& arguments, const SocketAddress* to, size_t first) {
  MessageSocket* socket = MessageSocket::from(env, arguments.self());
  void* bytes;
  size_t length;
  int fds[kMaxMessageDescriptors];
  size_t count;
  if (socket == nullptr ||
      !readArray(env, arguments[first], "bytes", napi_uint8_array, false, bytes, length) ||
      !readDescriptors(env, arguments[first + 1], fds, count)) {
    return nullptr;
  }
  const int error = socket->send(to == nullptr ? nullptr : to->get(), to == nullptr ? 0 : to->length, bytes, length,
                                 fds, count);
  if (error != 0 && error != EAGAIN) return throwErrno(env, "sendmsg", error);
  return makeBool(env, error == 0);
}

napi_value send(napi_env env, napi_callback_info info) {
  return sendMessage(env, Arguments(env, info), nullptr, 0);
}

napi_value sendTo(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress address;
  return readAddress(env, arguments[0], "address", address) ? sendMessage(env, arguments, &address, 1) : nullptr;
}

napi_value closeMessages(napi_env env, napi_callback_info info) {
  MessageSocket* socket = MessageSocket::from(env, Arguments(env, info).self());
  if (socket != nullptr) socket->close();
  return nullptr;
}

napi_value watchMessages(napi_env env, napi_callback_info info) {
  static const napi_property_descriptor methods[] = {method("send", send), method("sendTo", sendTo),
                                                     method("close", closeMessages)};
  const Arguments arguments(env, info);
  int32_t fd;
  napi_valuetype type = napi_undefined;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  if (napi_typeof(env, arguments[1], &type) != napi_ok || type != napi_object) {
    return throwType(env, "events must be an object");
  }
  bool isConversation = false;
  napi_get_value_bool(env, arguments[2], &isConversation);
  return MessageSocket::create(env, fd, arguments[1], isConversation, methods, sizeof methods / sizeof methods[0]);
}

}  // namespace

void bindMessages(napi_env env, napi_value exports) {
  addMethods(env, exports, {method("watchMessages", watchMessages)});
}

}  // namespace baton
