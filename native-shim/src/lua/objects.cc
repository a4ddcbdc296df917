#include "lua/objects.h"

#include "lua/vm.h"

namespace baton {
namespace {

// Is in the registry under its own address: the classes by their number. The table of a class has the value `true` under it.
const char kClasses = 0;

int collect(lua_State* state) {
  LuaObject* object = objectAt(state, 1);
  if (object == nullptr || object->reference == nullptr) return 0;
  napi_delete_reference(LuaVm::of(state)->env(), object->reference);
  object->reference = nullptr;
  return 0;
}

int areEqual(lua_State* state) {
  LuaObject* one = objectAt(state, 1);
  LuaObject* other = objectAt(state, 2);
  bool isSame = false;
  if (one != nullptr && other != nullptr && one->reference != nullptr && other->reference != nullptr) {
    napi_env env = LuaVm::of(state)->env();
    napi_handle_scope scope = nullptr;
    napi_open_handle_scope(env, &scope);
    napi_value first = nullptr;
    napi_value second = nullptr;
    napi_get_reference_value(env, one->reference, &first);
    napi_get_reference_value(env, other->reference, &second);
    napi_strict_equals(env, first, second, &isSame);
    napi_close_handle_scope(env, scope);
  }
  lua_pushboolean(state, isSame);
  return 1;
}

void pushClasses(lua_State* state) {
  lua_pushlightuserdata(state, const_cast<char*>(&kClasses));
  lua_rawget(state, LUA_REGISTRYINDEX);
  if (!lua_isnil(state, -1)) return;
  lua_pop(state, 1);
  lua_newtable(state);
  lua_pushlightuserdata(state, const_cast<char*>(&kClasses));
  lua_pushvalue(state, -2);
  lua_rawset(state, LUA_REGISTRYINDEX);
}

}  // namespace

LuaObject* objectAt(lua_State* state, int index) {
  if (lua_type(state, index) != LUA_TUSERDATA || lua_getmetatable(state, index) == 0) return nullptr;
  lua_pushlightuserdata(state, const_cast<char*>(&kClasses));
  lua_rawget(state, -2);
  bool isOurs = lua_toboolean(state, -1) != 0;
  lua_pop(state, 2);
  return isOurs ? static_cast<LuaObject*>(lua_touserdata(state, index)) : nullptr;
}

void pushClass(lua_State* state, int number) {
  pushClasses(state);
  lua_newtable(state);
  lua_pushlightuserdata(state, const_cast<char*>(&kClasses));
  lua_pushboolean(state, 1);
  lua_rawset(state, -3);
  lua_pushboolean(state, 0);
  lua_setfield(state, -2, "__metatable");
  lua_pushcfunction(state, collect);
  lua_setfield(state, -2, "__gc");
  lua_pushcfunction(state, areEqual);
  lua_setfield(state, -2, "__eq");
  lua_pushvalue(state, -1);
  lua_rawseti(state, -3, number);
  lua_remove(state, -2);
  lua_newtable(state);
  lua_pushvalue(state, -1);
  lua_setfield(state, -3, "__index");
}

void pushObject(lua_State* state, int number, napi_ref reference) {
  auto* object = static_cast<LuaObject*>(lua_newuserdata(state, sizeof(LuaObject)));
  object->reference = nullptr;
  pushClasses(state);
  lua_rawgeti(state, -1, number);
  lua_remove(state, -2);
  lua_setmetatable(state, -2);
  object->reference = reference;
}

}  // namespace baton
