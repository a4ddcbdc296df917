// The standard libraries of scripts.
#pragma once

extern "C" {
#include "lua.h"
}

namespace baton {

// Opens the libraries of Lua, without what would end or block the process, run other programs, load native code, or remove the
// limits of scripts. May raise an error.
void openLibraries(lua_State* state);

}  // namespace baton
