// Values between JavaScript and Lua. Strings are bytes: each UTF-16 unit of a JavaScript string is one byte.
//
// JavaScript → Lua: undefined and null, booleans, numbers, strings; an array is several results; an object has the property `lua`: the number
// of its class, -1 to yield, or -2 for a table, whose `entries` are its keys and values in turn.
// Lua → JavaScript: the same; a table is such an array of entries; a value that cannot be passed is an object { type }.

#include <cmath>
#include <cstring>

#include "lua/objects.h"
#include "lua/vm.h"

namespace baton {
namespace {

constexpr int kMaxDepth = 64;
// Of the tables that a call passes: those that contain others twice have more values than they have entries.
constexpr size_t kMaxValues = 64 * 1024;
constexpr int kYieldClass = -1;
constexpr int kTableClass = -2;

}  // namespace

void LuaVm::dropStaged() {
  for (Staged& each : staged_)
    if (each.object != nullptr) napi_delete_reference(env_, each.object);
  staged_.clear();
  if (bytes_.capacity() > 1 << 20) std::string().swap(bytes_);
  bytes_.clear();
}

bool LuaVm::stage(napi_value value, int depth) {
  napi_valuetype type = napi_undefined;
  if (value == nullptr || depth > kMaxDepth || napi_typeof(env_, value, &type) != napi_ok) {
    message_ = "a value is nested too deeply";
    return false;
  }
  Staged staged{Staged::Kind::kNil, 0, 0, 0, nullptr};
  if (type == napi_boolean) {
    bool truth = false;
    napi_get_value_bool(env_, value, &truth);
    staged.kind = Staged::Kind::kBoolean;
    staged.number = truth ? 1 : 0;
  } else if (type == napi_number) {
    staged.kind = Staged::Kind::kNumber;
    napi_get_value_double(env_, value, &staged.number);
  } else if (type == napi_string) {
    staged.kind = Staged::Kind::kString;
    napi_get_value_string_latin1(env_, value, nullptr, 0, &staged.length);
    staged.from = bytes_.size();
    // The copy ends with a zero byte.
    bytes_.resize(staged.from + staged.length + 1);
    napi_get_value_string_latin1(env_, value, &bytes_[staged.from], staged.length + 1, &staged.length);
  } else if (type == napi_object) {
    bool isArray = false;
    napi_is_array(env_, value, &isArray);
    napi_value part = nullptr;
    int32_t number = 0;
    if (isArray) {
      uint32_t length = 0;
      napi_get_array_length(env_, value, &length);
      for (uint32_t i = 0; i < length; i++)
        if (napi_get_element(env_, value, i, &part) != napi_ok || !stage(part, depth + 1)) return false;
      return true;
    }
    if (napi_get_named_property(env_, value, "lua", &part) != napi_ok ||
        napi_get_value_int32(env_, part, &number) != napi_ok) {
      message_ = "a value cannot be passed to Lua";
      return false;
    }
    if (number == kYieldClass) {
      staged.kind = Staged::Kind::kYield;
    } else if (number == kTableClass) {
      uint32_t length = 0;
      napi_value entries = nullptr;
      napi_get_named_property(env_, value, "entries", &entries);
      napi_get_array_length(env_, entries, &length);
      staged.kind = Staged::Kind::kTable;
      staged.number = length / 2;
      staged_.push_back(staged);
      for (uint32_t i = 0; i < length - (length & 1); i++)
        if (napi_get_element(env_, entries, i, &part) != napi_ok || !stage(part, depth + 1)) return false;
      return true;
    } else {
      staged.kind = Staged::Kind::kObject;
      staged.number = number;
      if (napi_create_reference(env_, value, 1, &staged.object) != napi_ok) return false;
    }
  }
  staged_.push_back(staged);
  return true;
}

size_t LuaVm::push(lua_State* state, size_t index) {
  luaL_checkstack(state, 8, "too many values");
  Staged* staged = &staged_[index];
  switch (staged->kind) {
    case Staged::Kind::kBoolean:
      lua_pushboolean(state, staged->number != 0);
      break;
    case Staged::Kind::kNumber:
      lua_pushnumber(state, staged->number);
      break;
    case Staged::Kind::kString:
      lua_pushlstring(state, bytes_.data() + staged->from, staged->length);
      break;
    case Staged::Kind::kObject: {
      pushObject(state, static_cast<int>(staged->number), staged->object);
      staged->object = nullptr;
      break;
    }
    case Staged::Kind::kTable: {
      auto entries = static_cast<size_t>(staged->number);
      lua_newtable(state);
      index++;
      for (size_t i = 0; i < entries; i++) {
        index = push(state, index);
        index = push(state, index);
        lua_rawset(state, -3);
      }
      return index;
    }
    default:
      lua_pushnil(state);
  }
  return index + 1;
}

bool LuaVm::countConverted(size_t bytes) {
  convertedBytes_ += bytes;
  if (++convertedValues_ > kMaxValues || convertedBytes_ > limits_.memoryBytes) isTooLarge_ = true;
  return !isTooLarge_;
}

// Raises no error, and needs no memory of Lua.
napi_value LuaVm::toJs(lua_State* state, int index, int depth) {
  napi_value made = nullptr;
  int type = lua_type(state, index);
  switch (type) {
    case LUA_TNIL:
    case LUA_TNONE:
      napi_get_undefined(env_, &made);
      return made;
    case LUA_TBOOLEAN:
      napi_get_boolean(env_, lua_toboolean(state, index) != 0, &made);
      return made;
    case LUA_TNUMBER:
      napi_create_double(env_, lua_tonumber(state, index), &made);
      return made;
    case LUA_TSTRING: {
      size_t length = 0;
      const char* text = lua_tolstring(state, index, &length);
      if (!countConverted(length)) break;
      napi_create_string_latin1(env_, text, length, &made);
      return made;
    }
    case LUA_TTABLE: {
      if (depth >= kMaxDepth || lua_checkstack(state, 8) == 0) break;
      if (index < 0) index = lua_gettop(state) + 1 + index;
      napi_create_array(env_, &made);
      uint32_t at = 0;
      lua_pushnil(state);
      while (lua_next(state, index) != 0) {
        if (!countConverted(0)) {
          lua_pop(state, 2);
          break;
        }
        napi_set_element(env_, made, at++, toJs(state, -2, depth + 1));
        napi_set_element(env_, made, at++, toJs(state, -1, depth + 1));
        lua_pop(state, 1);
      }
      return made;
    }
    case LUA_TUSERDATA: {
      LuaObject* object = objectAt(state, index);
      if (object == nullptr || object->reference == nullptr) break;
      napi_get_reference_value(env_, object->reference, &made);
      return made;
    }
    default:
      break;
  }
  napi_value name = nullptr;
  napi_create_object(env_, &made);
  napi_create_string_utf8(env_, lua_typename(state, type), NAPI_AUTO_LENGTH, &name);
  napi_set_named_property(env_, made, "type", name);
  return made;
}

}  // namespace baton
