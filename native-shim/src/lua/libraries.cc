#include "lua/libraries.h"

#include "lua/vm.h"

namespace baton {
namespace {

int refuse(lua_State* state) {
  return luaL_error(state, "%s is not available in Baton", lua_tostring(state, lua_upvalueindex(1)));
}

// A full collection of a large heap takes long for one instruction.
int collectGarbage(lua_State* state) {
  LuaVm::of(state)->checkLimits(state);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, LUA_MULTRET);
  return lua_gettop(state);
}

void refuseIn(lua_State* state, const char* library, const char* name) {
  lua_getglobal(state, library);
  lua_pushfstring(state, "%s.%s()", library, name);
  lua_pushcclosure(state, refuse, 1);
  lua_setfield(state, -2, name);
  lua_pop(state, 1);
}

void removeFrom(lua_State* state, const char* library, const char* name) {
  lua_getglobal(state, library);
  lua_pushnil(state);
  lua_setfield(state, -2, name);
  lua_pop(state, 1);
}

}  // namespace

void openLibraries(lua_State* state) {
  luaL_openlibs(state);
  for (const char* name : {"exit", "execute", "setlocale"}) refuseIn(state, "os", name);
  refuseIn(state, "io", "popen");
  refuseIn(state, "package", "loadlib");
  // debug.debug() reads from the terminal; the others reach into objects, functions and hooks that Baton relies on.
  for (const char* name :
       {"debug", "getmetatable", "getregistry", "sethook", "setlocal", "setmetatable", "setupvalue", "setuservalue"})
    removeFrom(state, "debug", name);
  removeFrom(state, "_G", "newproxy");
  // The third and the fourth searcher load native code.
  lua_getglobal(state, "package");
  lua_pushliteral(state, "");
  lua_setfield(state, -2, "cpath");
  lua_getfield(state, -1, "loaders");
  for (int i : {4, 3}) {
    lua_pushnil(state);
    lua_rawseti(state, -2, i);
  }
  lua_pop(state, 2);
  lua_getglobal(state, "collectgarbage");
  lua_pushcclosure(state, collectGarbage, 1);
  lua_setglobal(state, "collectgarbage");
}

}  // namespace baton
