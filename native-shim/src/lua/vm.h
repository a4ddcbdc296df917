// A Lua VM of one thread: its memory and time limits, the JavaScript objects that scripts hold, and coroutines.
//
// A Lua error unwinds the stack without running destructors, so a function that Lua calls holds no C++ object when it may raise one.
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

// How a run of a script ended.
enum class Outcome : int32_t { kEnded = 0, kYielded = 1, kFailed = 2 };

struct VmLimits {
  size_t memoryBytes;
  int64_t timeNs;
};

class LuaVm {
 public:
  // Returns nullptr if memory cannot be allocated.
  static LuaVm* open(napi_env env, const VmLimits& limits);
  ~LuaVm();
  LuaVm(const LuaVm&) = delete;
  LuaVm& operator=(const LuaVm&) = delete;

  // Defines the next class of objects. `methods` is an array of [name, signature, function]. Each letter of a signature is the type of
  // an argument: s a string, n a number, t a table, a any value; S and N are optional. With the signature '*' the method returns an
  // object whose class has a method `next`, and the script gets a function that calls `next`.
  bool define(napi_value methods);
  // Runs a chunk. Returns false if it cannot be compiled or fails; message() is then the reason.
  bool run(const std::string& source, const std::string& name);
  // Returns a reference to a global function; LUA_REFNIL if there is none.
  int functionOf(const char* name);
  // Calls `function` with `values` in a new coroutine. Returns the coroutine's reference; LUA_NOREF if memory cannot be allocated.
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
  // Raises an error in `state` when this run has exceeded its time limit or used up the C stack.
  void checkLimits(lua_State* state);
  napi_env env() const { return env_; }

 private:
  // A JavaScript value that is to be pushed to Lua. It holds no handle, because pushing it may raise a Lua error.
  struct Staged {
    enum class Kind : uint8_t { kNil, kBoolean, kNumber, kString, kObject, kTable, kYield } kind;
    double number;  // a boolean, a number, the class of an object, or the number of entries of a table
    size_t from;    // where a string begins in bytes_
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
  // Collects garbage if a run has failed or memory use is close to the limit: Lua itself does not collect when an allocation fails.
  void collectIfShort();
  // Reports to V8 how much memory is freed with this object.
  void reportMemory(bool isClosing);

  bool stage(napi_value value, int depth);
  void dropStaged();
  // Pushes the staged value at `index`, and returns the index after it.
  size_t push(lua_State* state, size_t index);
  napi_value toJs(lua_State* state, int index, int depth);
  // Counts a converted value. Returns false when the call has converted too many values or bytes.
  bool countConverted(size_t bytes);
  int finishCall(lua_State* state, napi_status status, napi_value result);

  napi_env env_;
  VmLimits limits_;
  lua_State* state_ = nullptr;
  size_t used_ = 0;
  // Bytes in use after the last full collection.
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
  int argument_ = 0;  // the index of the argument that an error is about
  size_t convertedValues_ = 0;
  size_t convertedBytes_ = 0;
  bool isTooLarge_ = false;
  std::vector<Staged> staged_;
  std::string bytes_;
  std::vector<napi_ref> functions_;
};

}  // namespace baton
