// Objects of JavaScript that scripts hold.
#pragma once

#include <node_api.h>

extern "C" {
#include "lua.h"
}

namespace baton {

struct LuaObject {
  napi_ref reference;
};

// Returns the object at `index`; nullptr for any other value.
LuaObject* objectAt(lua_State* state, int index);
// Creates the metatable of class number `number` and its table of methods, and leaves both on the stack. May raise an error.
void pushClass(lua_State* state, int number);
// Pushes an object of a class. The object owns `reference`. May raise an error.
void pushObject(lua_State* state, int number, napi_ref reference);

}  // namespace baton
