#include "node/values.h"

#include <uv.h>

#include <cstdio>
#include <cstring>

namespace baton {

void addMethods(napi_env env, napi_value object, std::initializer_list<napi_property_descriptor> methods) {
  napi_define_properties(env, object, methods.size(), methods.begin());
}

napi_value makeInt(napi_env env, int32_t value) {
  napi_value made = nullptr;
  napi_create_int32(env, value, &made);
  return made;
}

napi_value makeBool(napi_env env, bool value) {
  napi_value made = nullptr;
  napi_get_boolean(env, value, &made);
  return made;
}

napi_value makeBytes(napi_env env, const void* bytes, size_t length) {
  void* data = nullptr;
  napi_value buffer = nullptr;
  napi_value made = nullptr;
  if (napi_create_arraybuffer(env, length, &data, &buffer) != napi_ok) return nullptr;
  if (length > 0) memcpy(data, bytes, length);
  napi_create_typedarray(env, napi_uint8_array, length, buffer, 0, &made);
  return made;
}

napi_value makeAddress(napi_env env, const SocketAddress& address) {
  return makeBytes(env, &address.storage, address.length);
}

napi_value throwErrno(napi_env env, const char* call, int error) {
  char message[160];
  snprintf(message, sizeof message, "%s: %s", call, uv_strerror(-error));
  napi_throw_error(env, uv_err_name(-error), message);
  return nullptr;
}

napi_value makeError(napi_env env, int error, const std::string& reason) {
  const std::string code = uv_err_name(-error);
  const std::string text = code + ": " + (reason.empty() ? uv_strerror(-error) : reason);
  napi_value codeValue = nullptr;
  napi_value message = nullptr;
  napi_value made = nullptr;
  napi_create_string_utf8(env, code.data(), code.size(), &codeValue);
  napi_create_string_utf8(env, text.data(), text.size(), &message);
  napi_create_error(env, codeValue, message, &made);
  return made;
}

napi_value throwType(napi_env env, const char* message) {
  napi_throw_type_error(env, nullptr, message);
  return nullptr;
}

}  // namespace baton
