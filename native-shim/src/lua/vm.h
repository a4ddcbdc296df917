// A Lua VM of one thread: its memory and time limits, the objects of JavaScript that scripts hold, and coroutines.
//
// Lua raises errors with an unwinder that runs no destructors: functions that Lua calls hold no C++ objects while they may raise.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" {
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
}

namespace baton {

// What a run of a script has come to.
enum class Outcome : int32_t { kEnded = 0, kYielded = 1, kFailed = 2 };

struct VmLimits {
  size_t memoryBytes;
  int64_t timeNs;
};

class LuaVm {
 public:
  // Returns nullptr without memory.
  static LuaVm* open(napi_env env, const VmLimits& limits);
  ~LuaVm();
  LuaVm(const LuaVm&) = delete;
  LuaVm& operator=(const LuaVm&) = delete;

  // Defines the next class of objects: an array of [name, signature, function]. A letter of the signature is an argument: s a string, n a
  // number, t a table, a anything; S and N may be absent. '*' alone: the method
  // returns an object whose class has a method `next`, and the script gets a function that calls that.
  bool define(napi_value methods);
  // Runs a chunk; returns false with message() when it cannot be compiled or fails.
  bool run(const std::string& source, const std::string& name);
  // Returns a reference to a global function; LUA_REFNIL if there is none.
  int functionOf(const char* name);
  // Begins `function` with those arguments in a new coroutine. Returns its reference, or LUA_NOREF without memory.
  int start(int function, const napi_value* values, size_t count, Outcome& outcome);
  Outcome resume(int coroutine, const napi_value* values, size_t count);
  void release(int coroutine);
  // Frees everything but this object. Returns false while a script runs.
  bool close();
  bool isClosed() const { return state_ == nullptr; }
  const std::string& message() const { return message_; }
  size_t memoryBytes() const { return used_; }

  // ── For functions that Lua calls ──
  static LuaVm* of(lua_State* state);
  int call(lua_State* state, napi_ref function, const char* signature);
  // Raises an error in `state` when the time of this run is over, or its C stack is used up.
  void checkLimits(lua_State* state);
  napi_env env() const { return env_; }

 private:
  // A value on its way from JavaScript to Lua. It holds no handle, so that Lua may raise errors while it is pushed.
  struct Staged {
    enum class Kind : uint8_t { kNil, kBoolean, kNumber, kString, kObject, kTable, kYield } kind;
    double number;  // a boolean, a number, the class of an object, the entries of a table
    size_t from;    // of a string
    size_t length;
    napi_ref object;
  };

  LuaVm(napi_env env, const VmLimits& limits) : env_(env), limits_(limits) {}

  static void* allocate(void* self, void* block, size_t before, size_t after);
  static void onCount(lua_State* state, lua_Debug* debug);
  static int prepare(lua_State* state);

  void beginRun();
  Outcome continueRun(lua_State* coroutine, int arguments);
  bool isOverdue();
  void takeMessage(lua_State* state);
  // Lua collects nothing when memory is short: frees what runs have left behind, after a run that has failed or close to the limit.
  void collectIfShort();
  // Lets V8 know how much memory it would free with this object.
  void reportMemory(bool isClosing);

  bool stage(napi_value value, int depth);
  void dropStaged();
  // Pushes the staged value at `index`, and returns the index after it.
  size_t push(lua_State* state, size_t index);
  napi_value toJs(lua_State* state, int index, int depth);
  // Counts a value that is converted. Returns false when a call has too many.
  bool countConverted(size_t bytes);
  int finishCall(lua_State* state, napi_status status, napi_value result);

  napi_env env_;
  VmLimits limits_;
  lua_State* state_ = nullptr;
  size_t used_ = 0;
  // After the last full collection.
  size_t collectedBytes_ = 0;
  int64_t reportedBytes_ = 0;
  bool isReleasing_ = false;
  const char* stackBegin_ = nullptr;
  int64_t beganNs_ = 0;
  int64_t overdueCpuNs_ = 0;
  bool expired_ = false;
  bool isShort_ = false;
  int depth_ = 0;
  int classes_ = 0;
  std::string message_;
  int argument_ = 0;  // of an error about an argument
  size_t convertedValues_ = 0;
  size_t convertedBytes_ = 0;
  bool isTooLarge_ = false;
  std::vector<Staged> staged_;
  std::string bytes_;
  std::vector<napi_ref> functions_;
};

}  // namespace baton
