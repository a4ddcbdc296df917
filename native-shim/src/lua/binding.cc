// The entry point of the module `lua`, which only threads with Lua scripts load. It implements src/io/lua-vm.ts.

#include <string>

#include "lua/vm.h"

namespace baton {
namespace {

constexpr size_t kMaxValues = 4;

napi_value throwError(napi_env env, const std::string& message) {
  napi_value text = nullptr;
  napi_value error = nullptr;
  napi_create_string_latin1(env, message.data(), message.size(), &text);
  napi_create_error(env, nullptr, text, &error);
  napi_throw(env, error);
  return nullptr;
}

// The arguments of a method, and its VM; nullptr after throwing.
struct Call {
  Call(napi_env environment, napi_callback_info info) : env(environment) {
    napi_value self = nullptr;
    void* data = nullptr;
    napi_get_cb_info(env, info, &count, values, &self, nullptr);
    if (count > kMaxValues + 1) count = kMaxValues + 1;
    if (napi_unwrap(env, self, &data) == napi_ok) vm = static_cast<LuaVm*>(data);
    if (vm != nullptr && vm->isClosed()) vm = nullptr;
    if (vm == nullptr) napi_throw_type_error(env, nullptr, "this is no Lua VM that is open");
  }
  int32_t integer(size_t index) const {
    int32_t value = 0;
    napi_get_value_int32(env, values[index], &value);
    return value;
  }
  std::string text(size_t index) const {
    size_t length = 0;
    if (napi_get_value_string_latin1(env, values[index], nullptr, 0, &length) != napi_ok) return {};
    std::string text(length + 1, '\0');
    napi_get_value_string_latin1(env, values[index], &text[0], length + 1, &length);
    text.resize(length);
    return text;
  }

  napi_env env;
  size_t count = kMaxValues + 1;
  napi_value values[kMaxValues + 1] = {};
  LuaVm* vm = nullptr;
};

napi_value number(napi_env env, double value) {
  napi_value made = nullptr;
  napi_create_double(env, value, &made);
  return made;
}

napi_value define(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm == nullptr) return nullptr;
  if (!call.vm->define(call.values[0])) throwError(env, "a class cannot be defined");
  return nullptr;
}

napi_value run(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm != nullptr && !call.vm->run(call.text(0), call.text(1))) throwError(env, call.vm->message());
  return nullptr;
}

napi_value functionOf(napi_env env, napi_callback_info info) {
  Call call(env, info);
  return call.vm == nullptr ? nullptr : number(env, call.vm->functionOf(call.text(0).c_str()));
}

// Returns reference * 4 + outcome.
napi_value start(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm == nullptr) return nullptr;
  size_t count = call.count > 0 ? call.count - 1 : 0;
  Outcome outcome = Outcome::kFailed;
  int reference = call.vm->start(call.integer(0), call.values + 1, count, outcome);
  return number(env, reference * 4.0 + static_cast<int>(outcome));
}

napi_value resume(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm == nullptr) return nullptr;
  size_t count = call.count > 0 ? call.count - 1 : 0;
  return number(env, static_cast<int>(call.vm->resume(call.integer(0), call.values + 1, count)));
}

napi_value release(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm != nullptr) call.vm->release(call.integer(0));
  return nullptr;
}

napi_value close(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm != nullptr && !call.vm->close()) throwError(env, "a script runs in this Lua VM");
  return nullptr;
}

napi_value message(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.vm == nullptr) return nullptr;
  napi_value made = nullptr;
  napi_create_string_latin1(env, call.vm->message().data(), call.vm->message().size(), &made);
  return made;
}

napi_value memoryBytes(napi_env env, napi_callback_info info) {
  Call call(env, info);
  return call.vm == nullptr ? nullptr : number(env, static_cast<double>(call.vm->memoryBytes()));
}

// Creates a VM with at most $0 bytes, whose runs take at most $1 ms.
napi_value createVm(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value values[2] = {};
  double memory = 0;
  double time = 0;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  if (napi_get_value_double(env, values[0], &memory) != napi_ok || napi_get_value_double(env, values[1], &time) != napi_ok) {
    napi_throw_type_error(env, nullptr, "limits are numbers");
    return nullptr;
  }
  LuaVm* vm = LuaVm::open(env, {static_cast<size_t>(memory), static_cast<int64_t>(time) * 1000000});
  if (vm == nullptr) return throwError(env, "not enough memory for a Lua VM");
  napi_value object = nullptr;
  napi_create_object(env, &object);
  const napi_property_descriptor methods[] = {
      {"define", nullptr, define, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"run", nullptr, run, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"functionOf", nullptr, functionOf, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"start", nullptr, start, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"resume", nullptr, resume, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"release", nullptr, release, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"close", nullptr, close, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"message", nullptr, message, nullptr, nullptr, nullptr, napi_default, nullptr},
      {"memoryBytes", nullptr, memoryBytes, nullptr, nullptr, nullptr, napi_default, nullptr},
  };
  napi_define_properties(env, object, sizeof methods / sizeof *methods, methods);
  napi_wrap(env, object, vm, [](napi_env, void* data, void*) { delete static_cast<LuaVm*>(data); }, nullptr, nullptr);
  return object;
}

napi_value initialize(napi_env env, napi_value exports) {
  napi_property_descriptor create = {"createVm", nullptr, createVm, nullptr, nullptr, nullptr, napi_enumerable, nullptr};
  napi_define_properties(env, exports, 1, &create);
  return exports;
}

}  // namespace
}  // namespace baton

NAPI_MODULE(lua, baton::initialize)
