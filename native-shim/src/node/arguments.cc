#include "node/arguments.h"

#include <cstdio>
#include <cstring>

#include "node/values.h"

namespace baton {
namespace {

bool refuse(napi_env env, const char* name, const char* expected) {
  char message[160];
  snprintf(message, sizeof message, "%s must be %s", name, expected);
  throwType(env, message);
  return false;
}

bool readOptionalInt(napi_env env, napi_value object, const char* name, int& to) {
  napi_value value = property(env, object, name);
  return isAbsent(env, value) || readInt(env, value, name, 0, to);
}

}  // namespace

Arguments::Arguments(napi_env env, napi_callback_info info) : env_(env) {
  size_t count = kMaxArguments;
  napi_get_cb_info(env, info, &count, values_, &self_, nullptr);
}

bool readInt(napi_env env, napi_value value, const char* name, int32_t least, int32_t& to) {
  double number = 0;
  // Read as a double, because napi_get_value_int32 wraps values that are too large.
  if (napi_get_value_double(env, value, &number) != napi_ok || !(number >= least && number <= INT32_MAX) ||
      number != static_cast<double>(static_cast<int32_t>(number))) {
    return refuse(env, name, least == 0 ? "a non-negative 32-bit integer" : "a 32-bit integer in its range");
  }
  to = static_cast<int32_t>(number);
  return true;
}

bool readBool(napi_env env, napi_value value, const char* name, bool& to) {
  return napi_get_value_bool(env, value, &to) == napi_ok || refuse(env, name, "a boolean");
}

bool readAddress(napi_env env, napi_value value, const char* name, SocketAddress& to) {
  napi_typedarray_type type;
  size_t length;
  void* data;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array || length < sizeof(sa_family_t) || length > sizeof to.storage) {
    return refuse(env, name, "a sockaddr in a Uint8Array");
  }
  memcpy(&to.storage, data, length);
  to.length = static_cast<socklen_t>(length);
  return true;
}

bool readArray(napi_env env, napi_value value, const char* name, napi_typedarray_type type, bool shared, void*& data,
               size_t& length) {
  napi_typedarray_type actual;
  napi_value buffer;
  bool transferable = true;
  if (napi_get_typedarray_info(env, value, &actual, &length, &data, &buffer, nullptr) != napi_ok || actual != type) {
    const char* expected = type == napi_uint8_array   ? "a Uint8Array"
                           : type == napi_int32_array ? "an Int32Array"
                                                      : "a Float64Array";
    return refuse(env, name, expected);
  }
  if (shared && (napi_is_arraybuffer(env, buffer, &transferable) != napi_ok || transferable)) {
    return refuse(env, name, "a view of a SharedArrayBuffer");
  }
  return true;
}

bool readListenOptions(napi_env env, napi_value value, ListenOptions& to) {
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_object) return refuse(env, "options", "an object");
  if (!readBool(env, property(env, value, "reusePort"), "reusePort", to.reusePort) ||
      !readBool(env, property(env, value, "freebind"), "freebind", to.freebind) ||
      !readBool(env, property(env, value, "transparent"), "transparent", to.transparent) ||
      !readBool(env, property(env, value, "v6Only"), "v6Only", to.v6Only)) {
    return false;
  }
  napi_value isDatagram = property(env, value, "isDatagram");
  if (!isAbsent(env, isDatagram) && !readBool(env, isDatagram, "isDatagram", to.isDatagram)) return false;
  napi_value keepalive = property(env, value, "keepalive");
  if (!isAbsent(env, keepalive) && !readKeepalive(env, keepalive, to.keepalive)) return false;
  napi_value others = property(env, value, "others");
  return isAbsent(env, others) || readSocketOptions(env, others, to.others);
}

bool readSocketOptions(napi_env env, napi_value value, std::vector<SocketOption>& to) {
  uint32_t length = 0;
  if (napi_get_array_length(env, value, &length) != napi_ok) return refuse(env, "others", "an array");
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    SocketOption option;
    if (napi_get_element(env, value, i, &element) != napi_ok || !readSocketOption(env, element, option)) return false;
    to.push_back(std::move(option));
  }
  return true;
}

bool readSocketOption(napi_env env, napi_value value, SocketOption& to) {
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_object) return refuse(env, "option", "an object");
  void* bytes;
  size_t length;
  if (!readInt(env, property(env, value, "level"), "level", INT32_MIN, to.level) ||
      !readInt(env, property(env, value, "name"), "name", INT32_MIN, to.name) ||
      !readArray(env, property(env, value, "value"), "value", napi_uint8_array, false, bytes, length)) {
    return false;
  }
  const auto* start = static_cast<const uint8_t*>(bytes);
  to.value.assign(start, start + length);
  return true;
}

bool readKeepalive(napi_env env, napi_value value, Keepalive& to) {
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_object) return refuse(env, "keepalive", "an object");
  to.enabled = true;
  return readOptionalInt(env, value, "idle", to.idle) && readOptionalInt(env, value, "interval", to.interval) &&
         readOptionalInt(env, value, "probes", to.probes);
}

bool isAbsent(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;
  return value == nullptr || (napi_typeof(env, value, &type) == napi_ok && type == napi_undefined);
}

napi_value property(napi_env env, napi_value object, const char* name) {
  napi_value value = nullptr;
  return napi_get_named_property(env, object, name, &value) == napi_ok ? value : nullptr;
}

}  // namespace baton
