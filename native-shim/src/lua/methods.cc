// The methods of objects: functions of JavaScript that Lua calls.

#include <cstring>

#include "lua/objects.h"
#include "lua/vm.h"

namespace baton {
namespace {

constexpr int kMaxArguments = 8;

int callMethod(lua_State* state) {
  auto function = static_cast<napi_ref>(lua_touserdata(state, lua_upvalueindex(1)));
  return LuaVm::of(state)->call(state, function, lua_tostring(state, lua_upvalueindex(2)));
}

// Ends an iteration, or returns the next of its entries.
int callNext(lua_State* state) {
  lua_settop(state, 0);
  lua_pushvalue(state, lua_upvalueindex(3));
  return callMethod(state);
}

// Returns the function of the iteration that the method begins.
int callIteration(lua_State* state) {
  int count = callMethod(state);
  LuaObject* iterator = count > 0 ? objectAt(state, -count) : nullptr;
  if (iterator == nullptr) return luaL_error(state, "no iterator");
  int at = lua_gettop(state) - count + 1;
  lua_getfield(state, at, "next");
  lua_getupvalue(state, -1, 1);
  lua_getupvalue(state, -2, 2);
  lua_pushvalue(state, at);
  lua_pushcclosure(state, callNext, 3);
  return 1;
}

struct Method {
  const char* name;
  const char* signature;
  napi_ref function;
};

struct Class {
  int number;
  const std::vector<Method>* methods;
};

int addClass(lua_State* state) {
  auto* defined = static_cast<const Class*>(lua_touserdata(state, 1));
  pushClass(state, defined->number);
  for (const Method& method : *defined->methods) {
    lua_pushlightuserdata(state, method.function);
    lua_pushstring(state, method.signature);
    lua_pushcclosure(state, method.signature[0] == '*' ? callIteration : callMethod, 2);
    // Scripts reach the methods only.
    lua_setfield(state, strncmp(method.name, "__", 2) == 0 ? -3 : -2, method.name);
  }
  return 0;
}

// Converts arguments in place, or raises an error.
void checkArgument(lua_State* state, int index, char kind) {
  switch (kind) {
    case 's':
      luaL_checkstring(state, index);
      break;
    case 'S':
      luaL_optstring(state, index, nullptr);
      break;
    case 'n':
      luaL_checknumber(state, index);
      lua_pushnumber(state, lua_tonumber(state, index));
      lua_replace(state, index);
      break;
    case 'N':
      if (lua_isnoneornil(state, index)) break;
      luaL_checknumber(state, index);
      lua_pushnumber(state, lua_tonumber(state, index));
      lua_replace(state, index);
      break;
    case 't':
      luaL_checktype(state, index, LUA_TTABLE);
      break;
    default:
      break;
  }
}

}  // namespace

int LuaVm::call(lua_State* state, napi_ref function, const char* signature) {
  checkLimits(state);
  LuaObject* self = objectAt(state, 1);
  if (self == nullptr || self->reference == nullptr) return luaL_typerror(state, 1, "object of Envoy's API");
  if (*signature == '*') signature++;
  auto count = static_cast<int>(strlen(signature));
  if (lua_gettop(state) < count + 1) lua_checkstack(state, count);
  for (int i = 0; i < count; i++) checkArgument(state, i + 2, signature[i]);

  napi_handle_scope scope = nullptr;
  napi_open_handle_scope(env_, &scope);
  napi_value arguments[kMaxArguments];
  napi_value object = nullptr;
  napi_value called = nullptr;
  napi_value result = nullptr;
  int passed = 0;
  convertedValues_ = convertedBytes_ = 0;
  isTooLarge_ = false;
  for (; passed < count && passed < kMaxArguments; passed++) arguments[passed] = toJs(state, passed + 2, 0);
  if (isTooLarge_) {
    napi_close_handle_scope(env_, scope);
    return luaL_error(state, "a table is too large, or contains itself");
  }
  napi_get_reference_value(env_, self->reference, &object);
  napi_get_reference_value(env_, function, &called);
  depth_++;
  napi_status status = napi_call_function(env_, object, called, static_cast<size_t>(passed), arguments, &result);
  depth_--;
  dropStaged();
  int problem = finishCall(state, status, result);
  napi_close_handle_scope(env_, scope);

  if (problem == 1) {
    int argument = argument_;
    lua_pushlstring(state, message_.data(), message_.size());
    if (argument > 0) return luaL_argerror(state, argument, lua_tostring(state, -1));
    return luaL_error(state, "%s", lua_tostring(state, -1));
  }
  if (!staged_.empty() && staged_[0].kind == Staged::Kind::kYield) return lua_yield(state, 0);
  int before = lua_gettop(state);
  for (size_t i = 0; i < staged_.size();) i = push(state, i);
  return lua_gettop(state) - before;
}

// Stages the result, or takes the message of what was thrown. Returns 1 for an error.
int LuaVm::finishCall(lua_State*, napi_status status, napi_value result) {
  argument_ = 0;
  if (status == napi_ok) {
    napi_valuetype type = napi_undefined;
    napi_typeof(env_, result, &type);
    if (type == napi_undefined) return 0;
    return stage(result, 0) ? 0 : 1;
  }
  message_ = "the call was interrupted";
  bool isPending = false;
  napi_is_exception_pending(env_, &isPending);
  napi_value thrown = nullptr;
  if (!isPending || napi_get_and_clear_last_exception(env_, &thrown) != napi_ok) return 1;
  napi_valuetype type = napi_undefined;
  napi_typeof(env_, thrown, &type);
  if (type != napi_object) return 1;
  napi_value part = nullptr;
  size_t length = 0;
  char text[1024];
  if (napi_get_named_property(env_, thrown, "message", &part) == napi_ok &&
      napi_get_value_string_latin1(env_, part, text, sizeof text, &length) == napi_ok)
    message_.assign(text, length);
  if (napi_get_named_property(env_, thrown, "argument", &part) == napi_ok)
    napi_get_value_int32(env_, part, &argument_);
  return 1;
}

bool LuaVm::define(napi_value list) {
  uint32_t length = 0;
  if (napi_get_array_length(env_, list, &length) != napi_ok) return false;
  std::vector<Method> methods;
  std::vector<std::string> texts;
  texts.reserve(size_t{length} * 2);
  for (uint32_t i = 0; i < length; i++) {
    napi_value row = nullptr;
    napi_value part = nullptr;
    Method method{nullptr, nullptr, nullptr};
    if (napi_get_element(env_, list, i, &row) != napi_ok) return false;
    for (uint32_t j = 0; j < 2; j++) {
      char text[64];
      size_t size = 0;
      if (napi_get_element(env_, row, j, &part) != napi_ok ||
          napi_get_value_string_latin1(env_, part, text, sizeof text, &size) != napi_ok)
        return false;
      texts.emplace_back(text, size);
    }
    method.name = texts[texts.size() - 2].c_str();
    method.signature = texts[texts.size() - 1].c_str();
    if (napi_get_element(env_, row, 2, &part) != napi_ok ||
        napi_create_reference(env_, part, 1, &method.function) != napi_ok)
      return false;
    functions_.push_back(method.function);
    methods.push_back(method);
  }
  Class defined{classes_++, &methods};
  if (lua_cpcall(state_, addClass, &defined) == 0) return true;
  lua_pop(state_, 1);
  return false;
}

}  // namespace baton
