// createDatagramSockets(), and the methods of its result.

#include <node_api.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "datagrams/datagram-sockets.h"
#include "node/arguments.h"
#include "node/bindings.h"
#include "node/values.h"

namespace baton {
namespace {

constexpr napi_type_tag kTag = {0x6261746f6e2d7368, 0x696d2d6461746167};
constexpr uint32_t kStride = 16;

// The sockets of a thread and their JavaScript side.
class DatagramInstance final : public DatagramHandler {
 public:
  static napi_value create(napi_env env, napi_value options, const napi_property_descriptor* methods, size_t count);

  // Returns the open sockets of a wrapper object; throws and returns nullptr for any other object and for closed ones.
  static DatagramSockets* from(const Arguments& arguments) {
    bool ours = false;
    void* instance = nullptr;
    const napi_env env = arguments.env();
    if (napi_check_object_type_tag(env, arguments.self(), &kTag, &ours) == napi_ok && ours) {
      napi_unwrap(env, arguments.self(), &instance);
    }
    if (instance == nullptr) {
      throwType(env, "called on something that has no datagram sockets");
      return nullptr;
    }
    DatagramSockets* sockets = static_cast<DatagramInstance*>(instance)->sockets_.get();
    if (sockets != nullptr && sockets->isOpen()) return sockets;
    throwErrno(env, "the datagram sockets are closed", EBADF);
    return nullptr;
  }

  void handle(uint32_t count) override {
    HandleScope scope(env_);
    napi_value receiver;
    napi_value callback;
    napi_value argument = makeInt(env_, static_cast<int32_t>(count));
    napi_get_global(env_, &receiver);
    napi_get_reference_value(env_, callback_, &callback);
    if (napi_make_callback(env_, context_, receiver, callback, 1, &argument, nullptr) == napi_ok) return;
    bool isPending = false;
    napi_value exception;
    if (napi_is_exception_pending(env_, &isPending) == napi_ok && isPending &&
        napi_get_and_clear_last_exception(env_, &exception) == napi_ok) {
      napi_fatal_exception(env_, exception);
    }
  }

  void closed() override {
    napi_delete_reference(env_, arrays_);
    napi_delete_reference(env_, callback_);
    napi_async_destroy(env_, context_);
    sockets_.reset();
    if (hook_ != nullptr) napi_remove_async_cleanup_hook(hook_);
    deleteWhenUnused();
  }

 private:
  explicit DatagramInstance(napi_env env) : env_(env) {}
  ~DatagramInstance() = default;

  bool open(napi_value options);

  static void threadEnds(napi_async_cleanup_hook_handle hook, void* self) {
    auto* instance = static_cast<DatagramInstance*>(self);
    instance->hook_ = hook;
    if (instance->sockets_ != nullptr) instance->sockets_->close();
  }

  // Open sockets stay in use without their wrapper until the thread ends.
  static void wrapperCollected(napi_env, void* self, void*) {
    auto* instance = static_cast<DatagramInstance*>(self);
    instance->isWrapped_ = false;
    instance->deleteWhenUnused();
  }

  void deleteWhenUnused() {
    if (!isWrapped_ && sockets_ == nullptr) delete this;
  }

  napi_env env_;
  napi_ref arrays_ = nullptr;
  napi_ref callback_ = nullptr;
  napi_async_context context_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  std::unique_ptr<DatagramSockets> sockets_;
  bool isWrapped_ = false;
};

napi_value DatagramInstance::create(napi_env env, napi_value options, const napi_property_descriptor* methods,
                                    size_t count) {
  napi_value wrapper;
  if (napi_create_object(env, &wrapper) != napi_ok ||
      napi_define_properties(env, wrapper, count, methods) != napi_ok ||
      napi_type_tag_object(env, wrapper, &kTag) != napi_ok) {
    return nullptr;
  }
  auto* instance = new DatagramInstance(env);
  if (napi_wrap(env, wrapper, instance, wrapperCollected, nullptr, nullptr) != napi_ok) {
    delete instance;
    return nullptr;
  }
  instance->isWrapped_ = true;
  return instance->open(options) ? wrapper : nullptr;
}

bool DatagramInstance::open(napi_value options) {
  napi_value arrays[3] = {property(env_, options, "memory"), property(env_, options, "events"),
                          property(env_, options, "sends")};
  void* data[3];
  size_t lengths[3];
  int32_t receiveBytes;
  int32_t reserve;
  if (!readArray(env_, arrays[0], "memory", napi_uint8_array, true, data[0], lengths[0]) ||
      !readArray(env_, arrays[1], "events", napi_int32_array, false, data[1], lengths[1]) ||
      !readArray(env_, arrays[2], "sends", napi_int32_array, false, data[2], lengths[2]) ||
      !readInt(env_, property(env_, options, "receiveBytes"), "receiveBytes", 1 << 16, receiveBytes) ||
      !readInt(env_, property(env_, options, "reserve"), "reserve", 0, reserve)) {
    return false;
  }
  napi_value callback = property(env_, options, "onBatch");
  napi_valuetype type = napi_undefined;
  if (static_cast<size_t>(receiveBytes) > lengths[0] || lengths[0] > INT32_MAX || lengths[1] < 4 * kStride ||
      callback == nullptr || napi_typeof(env_, callback, &type) != napi_ok || type != napi_function) {
    throwType(env_, "memory, events or onBatch is not usable");
    return false;
  }
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env_, &loop) != napi_ok) return false;
  const DatagramArrays to{static_cast<uint8_t*>(data[0]),  static_cast<uint32_t>(lengths[0]),
                          static_cast<uint32_t>(receiveBytes), static_cast<int32_t*>(data[1]),
                          static_cast<uint32_t>(lengths[1] / kStride), static_cast<int32_t*>(data[2]),
                          static_cast<uint32_t>(lengths[2] / kStride)};
  napi_value holder;
  napi_value name;
  napi_create_array_with_length(env_, 3, &holder);
  for (uint32_t i = 0; i < 3; ++i) napi_set_element(env_, holder, i, arrays[i]);
  napi_create_reference(env_, holder, 1, &arrays_);
  napi_create_reference(env_, callback, 1, &callback_);
  napi_create_string_utf8(env_, "baton:datagrams", NAPI_AUTO_LENGTH, &name);
  napi_async_init(env_, nullptr, name, &context_);
  sockets_ = std::make_unique<DatagramSockets>(to, static_cast<uint32_t>(reserve), *this);
  if (const int error = sockets_->open(loop)) {
    if (sockets_->isOpen()) sockets_->close();
    else closed();
    throwErrno(env_, "createDatagramSockets", error);
    return false;
  }
  napi_add_async_cleanup_hook(env_, threadEnds, this, &hook_);
  return true;
}

napi_value answerId(napi_env env, const char* call, Id id) {
  return id < 0 ? throwErrno(env, call, -id) : makeInt(env, id);
}

napi_value addListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  int32_t maxBytes;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets == nullptr || !readInt(env, arguments[0], "fd", 0, fd) ||
      !readInt(env, arguments[1], "maxBytes", 1, maxBytes)) {
    return nullptr;
  }
  if (maxBytes > UINT16_MAX) return throwType(env, "maxBytes is more than a datagram can have");
  return answerId(env, "addListener", sockets->addListener(fd, static_cast<uint32_t>(maxBytes)));
}

napi_value connect(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress remote;
  SocketAddress local;
  std::vector<SocketOption> options;
  int32_t maxBytes;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets == nullptr || !readAddress(env, arguments[0], "remote", remote) ||
      !readInt(env, arguments[3], "maxBytes", 1, maxBytes)) {
    return nullptr;
  }
  const bool hasLocal = !isAbsent(env, arguments[1]);
  if (hasLocal && !readAddress(env, arguments[1], "local", local)) return nullptr;
  if (!isAbsent(env, arguments[2]) && !readSocketOptions(env, arguments[2], options)) return nullptr;
  if (maxBytes > UINT16_MAX) return throwType(env, "maxBytes is more than a datagram can have");
  const Id id = sockets->connect(remote, hasLocal ? &local : nullptr, options, static_cast<uint32_t>(maxBytes));
  return answerId(env, "connect", id);
}

napi_value setReceiving(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  bool receives;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets == nullptr || !readInt(env, arguments[0], "id", 0, id) ||
      !readBool(env, arguments[1], "receives", receives)) {
    return nullptr;
  }
  const int error = sockets->setReceiving(id, receives);
  return error == 0 ? nullptr : throwErrno(env, "setReceiving", error);
}

napi_value removeSocket(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets != nullptr && readInt(env, arguments[0], "id", 0, id)) sockets->remove(id);
  return nullptr;
}

napi_value localAddress(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  SocketAddress address;
  address.length = sizeof address.storage;
  const int fd = sockets->descriptor(id);
  if (fd < 0 || getsockname(fd, address.get(), &address.length) != 0) address.length = 0;
  return makeAddress(env, address);
}

napi_value flush(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t count;
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets == nullptr || !readInt(env, arguments[0], "count", 0, count)) return nullptr;
  return makeBool(env, sockets->flush(static_cast<uint32_t>(count)));
}

napi_value close(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  DatagramSockets* sockets = DatagramInstance::from(arguments);
  if (sockets != nullptr) sockets->close();
  return nullptr;
}

napi_value createDatagramSockets(napi_env env, napi_callback_info info) {
  static const napi_property_descriptor methods[] = {
      method("addListener", addListener),   method("connect", connect),
      method("setReceiving", setReceiving), method("remove", removeSocket),
      method("localAddress", localAddress), method("flush", flush),
      method("close", close)};
  const Arguments arguments(env, info);
  napi_valuetype type = napi_undefined;
  if (napi_typeof(env, arguments[0], &type) != napi_ok || type != napi_object) {
    return throwType(env, "options must be an object");
  }
  return DatagramInstance::create(env, arguments[0], methods, sizeof methods / sizeof methods[0]);
}

}  // namespace

void bindDatagrams(napi_env env, napi_value exports) {
  addMethods(env, exports, {method("createDatagramSockets", createDatagramSockets)});
}

}  // namespace baton
