// Creates JavaScript values and throws errors.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "system/sockets.h"

namespace baton {

// Holds the handles that a callback of the event loop creates.
class HandleScope {
 public:
  explicit HandleScope(napi_env env) : env_(env) { napi_open_handle_scope(env, &scope_); }
  ~HandleScope() { napi_close_handle_scope(env_, scope_); }
  HandleScope(const HandleScope&) = delete;
  HandleScope& operator=(const HandleScope&) = delete;

 private:
  napi_env env_;
  napi_handle_scope scope_ = nullptr;
};

napi_value makeInt(napi_env env, int32_t value);
napi_value makeBool(napi_env env, bool value);
// Returns a new Uint8Array; nullptr if memory cannot be allocated.
napi_value makeBytes(napi_env env, const void* bytes, size_t length);
napi_value makeAddress(napi_env env, const SocketAddress& address);
// Throws an Error whose `code` is the errno's name (EADDRINUSE …), and returns nullptr.
napi_value throwErrno(napi_env env, const char* call, int error);
// Returns an Error with `code`. Its message has `reason`, or the errno's description if `reason` is empty.
napi_value makeError(napi_env env, int error, const std::string& reason);
napi_value throwType(napi_env env, const char* message);

// Describes a method of an object, or a function of the module.
inline napi_property_descriptor method(const char* name, napi_callback call) {
  return {name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, nullptr};
}
void addMethods(napi_env env, napi_value object, std::initializer_list<napi_property_descriptor> methods);

}  // namespace baton
