// Reads JavaScript arguments. Each function returns false after throwing a TypeError that names the argument.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "system/sockets.h"

namespace baton {

// The arguments of one call. Absent ones are undefined.
class Arguments {
 public:
  static constexpr size_t kMaxArguments = 6;

  Arguments(napi_env env, napi_callback_info info);

  napi_env env() const { return env_; }
  napi_value self() const { return self_; }
  napi_value operator[](size_t index) const { return values_[index]; }

 private:
  napi_env env_;
  napi_value self_ = nullptr;
  napi_value values_[kMaxArguments] = {};
};

bool readInt(napi_env env, napi_value value, const char* name, int32_t least, int32_t& to);
bool readBool(napi_env env, napi_value value, const char* name, bool& to);
// Reads a raw sockaddr in a Uint8Array.
bool readAddress(napi_env env, napi_value value, const char* name, SocketAddress& to);
// Reads a typed array of that type; `length` is in elements. With `shared`, it must be a view of a SharedArrayBuffer.
bool readArray(napi_env env, napi_value value, const char* name, napi_typedarray_type type, bool shared, void*& data,
               size_t& length);
bool readListenOptions(napi_env env, napi_value value, ListenOptions& to);
bool readSocketOptions(napi_env env, napi_value value, std::vector<SocketOption>& to);
bool readSocketOption(napi_env env, napi_value value, SocketOption& to);
bool readKeepalive(napi_env env, napi_value value, Keepalive& to);

bool isAbsent(napi_env env, napi_value value);
napi_value property(napi_env env, napi_value object, const char* name);

}  // namespace baton
