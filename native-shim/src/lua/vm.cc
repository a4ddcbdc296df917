#include "lua/vm.h"

#include <time.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "lua/libraries.h"
#include "lua/objects.h"

extern "C" void (*baton_checkpoint)(lua_State* state);

namespace baton {
namespace {

// Instructions between two looks at the clock.
constexpr int kInstructions = 1000;
// Allocations of this size look at the clock too: they may take as long as many instructions.
constexpr size_t kLargeBytes = 64 * 1024;
// Of all VMs of one thread.
constexpr size_t kThreadBytes = 256 * 1024 * 1024;
thread_local size_t threadBytes = 0;
// Of the C stack, which each callback of a function in C grows: threads of Node have 4 MB.
constexpr ptrdiff_t kStackBytes = 1024 * 1024;
// What V8 assumes that a VM holds, and the smallest change that it is told.
constexpr int64_t kTypicalBytes = 256 * 1024;
constexpr int64_t kReportedBytes = 1024 * 1024;

int64_t nowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace

LuaVm* LuaVm::open(napi_env env, const VmLimits& limits) {
  auto* vm = new (std::nothrow) LuaVm(env, limits);
  if (vm == nullptr) return nullptr;
  vm->state_ = lua_newstate(allocate, vm);
  vm->beginRun();
  if (vm->state_ != nullptr && lua_cpcall(vm->state_, prepare, nullptr) == 0) {
    baton_checkpoint = [](lua_State* state) { of(state)->checkLimits(state); };
    napi_adjust_external_memory(env, kTypicalBytes, &vm->reportedBytes_);
    vm->reportedBytes_ = kTypicalBytes;
    return vm;
  }
  delete vm;
  return nullptr;
}

LuaVm::~LuaVm() { close(); }

bool LuaVm::close() {
  if (depth_ > 0) return false;
  if (state_ != nullptr) lua_close(state_);
  state_ = nullptr;
  dropStaged();
  for (napi_ref function : functions_) napi_delete_reference(env_, function);
  functions_.clear();
  reportMemory(true);
  return true;
}

LuaVm* LuaVm::of(lua_State* state) {
  void* self = nullptr;
  lua_getallocf(state, &self);
  return static_cast<LuaVm*>(self);
}

int LuaVm::prepare(lua_State* state) {
  openLibraries(state);
  return 0;
}

// ── Limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────

void* LuaVm::allocate(void* self, void* block, size_t before, size_t after) {
  auto* vm = static_cast<LuaVm*>(self);
  if (after == 0) {
    free(block);
    vm->used_ -= before;
    threadBytes -= before;
    return nullptr;
  }
  if (after > before && !vm->isReleasing_) {
    size_t more = after - before;
    if (vm->used_ + more > vm->limits_.memoryBytes || threadBytes + more > kThreadBytes ||
        (after >= kLargeBytes && vm->isOverdue())) {
      vm->isShort_ = true;
      return nullptr;
    }
  }
  void* moved = realloc(block, after);
  if (moved == nullptr) return nullptr;
  vm->used_ += after - before;
  threadBytes += after - before;
  return moved;
}

void LuaVm::beginRun() {
  if (depth_ > 0) return;
  stackBegin_ = static_cast<const char*>(__builtin_frame_address(0));
  beganNs_ = nowNs(CLOCK_MONOTONIC);
  overdueCpuNs_ = 0;
  if (expired_) expired_ = false;
  if (state_ != nullptr) lua_sethook(state_, onCount, LUA_MASKCOUNT, kInstructions);
}

// Once the run has taken its time by the wall clock, it may take as much processor time: a thread that gets no processor does not end it.
bool LuaVm::isOverdue() {
  if (expired_) return true;
  if (nowNs(CLOCK_MONOTONIC) - beganNs_ < limits_.timeNs) return false;
  int64_t cpu = nowNs(CLOCK_THREAD_CPUTIME_ID);
  if (overdueCpuNs_ == 0) overdueCpuNs_ = cpu;
  expired_ = cpu - overdueCpuNs_ >= limits_.timeNs;
  return expired_;
}

void LuaVm::checkLimits(lua_State* state) {
  if (stackBegin_ - static_cast<const char*>(__builtin_frame_address(0)) > kStackBytes) luaL_error(state, "stack overflow");
  if (!isOverdue()) return;
  // Each further instruction fails too, so that pcall() in a loop cannot keep the script alive.
  lua_sethook(state, onCount, LUA_MASKCOUNT, 1);
  luaL_error(state, "script exceeded its time limit of %d ms", static_cast<int>(limits_.timeNs / 1000000));
}

void LuaVm::onCount(lua_State* state, lua_Debug*) { of(state)->checkLimits(state); }

// ── Chunks and coroutines ────────────────────────────────────────────────────────────────────────────────────────────

namespace {

struct Chunk {
  const char* source;
  size_t length;
  const char* name;
};

int runChunk(lua_State* state) {
  auto* chunk = static_cast<const Chunk*>(lua_touserdata(state, 1));
  if (luaL_loadbufferx(state, chunk->source, chunk->length, chunk->name, "t") != 0) return lua_error(state);
  lua_call(state, 0, 0);
  return 0;
}

struct GlobalFunction {
  const char* name;
  int reference;
};

int referFunction(lua_State* state) {
  auto* global = static_cast<GlobalFunction*>(lua_touserdata(state, 1));
  lua_getglobal(state, global->name);
  global->reference = lua_isfunction(state, -1) ? luaL_ref(state, LUA_REGISTRYINDEX) : LUA_REFNIL;
  return 0;
}

struct NewCoroutine {
  int function;
  int reference;
};

int newCoroutine(lua_State* state) {
  auto* wanted = static_cast<NewCoroutine*>(lua_touserdata(state, 1));
  lua_State* coroutine = lua_newthread(state);
  lua_rawgeti(state, LUA_REGISTRYINDEX, wanted->function);
  lua_xmove(state, coroutine, 1);
  wanted->reference = luaL_ref(state, LUA_REGISTRYINDEX);
  return 0;
}

lua_State* coroutineOf(lua_State* state, int reference) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, reference);
  lua_State* coroutine = lua_tothread(state, -1);
  lua_pop(state, 1);
  return coroutine;
}

}  // namespace

bool LuaVm::run(const std::string& source, const std::string& name) {
  beginRun();
  Chunk chunk{source.data(), source.size(), name.c_str()};
  depth_++;
  int status = lua_cpcall(state_, runChunk, &chunk);
  depth_--;
  if (status == 0) return true;
  takeMessage(state_);
  lua_pop(state_, 1);
  return false;
}

int LuaVm::functionOf(const char* name) {
  GlobalFunction global{name, LUA_REFNIL};
  if (lua_cpcall(state_, referFunction, &global) != 0) lua_pop(state_, 1);
  return global.reference;
}

int LuaVm::start(int function, const napi_value* values, size_t count, Outcome& outcome) {
  NewCoroutine wanted{function, LUA_NOREF};
  if (lua_cpcall(state_, newCoroutine, &wanted) != 0) {
    takeMessage(state_);
    lua_pop(state_, 1);
    outcome = Outcome::kFailed;
    return LUA_NOREF;
  }
  outcome = resume(wanted.reference, values, count);
  return wanted.reference;
}

namespace {

// Lua raises errors of the pushed values in a protected call; then they move to the coroutine.
struct Push {
  LuaVm* vm;
  lua_State* to;
  size_t count;
  void (*push)(LuaVm* vm, lua_State* state);
};

int pushAll(lua_State* state) {
  auto* pushing = static_cast<Push*>(lua_touserdata(state, 1));
  int before = lua_gettop(state);
  pushing->push(pushing->vm, state);
  int count = lua_gettop(state) - before;
  if (lua_checkstack(pushing->to, count + 8) == 0) return luaL_error(state, "too many values");
  lua_xmove(state, pushing->to, count);
  pushing->count = static_cast<size_t>(count);
  return 0;
}

}  // namespace

Outcome LuaVm::resume(int reference, const napi_value* values, size_t count) {
  lua_State* coroutine = coroutineOf(state_, reference);
  if (coroutine == nullptr) {
    message_ = "no such coroutine";
    return Outcome::kFailed;
  }
  beginRun();
  dropStaged();
  for (size_t i = 0; i < count; i++)
    if (!stage(values[i], 0)) return Outcome::kFailed;
  Push pushing{this, coroutine, 0, [](LuaVm* vm, lua_State* state) {
                 for (size_t i = 0; i < vm->staged_.size();) i = vm->push(state, i);
               }};
  if (lua_cpcall(state_, pushAll, &pushing) != 0) {
    takeMessage(state_);
    lua_pop(state_, 1);
    return Outcome::kFailed;
  }
  return continueRun(coroutine, static_cast<int>(pushing.count));
}

Outcome LuaVm::continueRun(lua_State* coroutine, int arguments) {
  depth_++;
  int status = lua_resume(coroutine, arguments);
  depth_--;
  if (status == 0) return Outcome::kEnded;
  if (status == LUA_YIELD) return Outcome::kYielded;
  takeMessage(coroutine);
  return Outcome::kFailed;
}

void LuaVm::release(int coroutine) {
  // This is not a protected call: an error would end the process.
  isReleasing_ = true;
  luaL_unref(state_, LUA_REGISTRYINDEX, coroutine);
  isReleasing_ = false;
  if (depth_ > 0) return;
  collectIfShort();
  reportMemory(false);
}

void LuaVm::collectIfShort() {
  size_t limit = limits_.memoryBytes;
  if (!isShort_ && (used_ < limit / 4 * 3 || used_ < collectedBytes_ + limit / 8)) return;
  isShort_ = false;
  isReleasing_ = true;
  auto all = [](lua_State* state) { return lua_gc(state, LUA_GCCOLLECT, 0); };
  if (lua_cpcall(state_, all, nullptr) != 0) lua_pop(state_, 1);
  isReleasing_ = false;
  collectedBytes_ = used_;
}

void LuaVm::reportMemory(bool isClosing) {
  int64_t change = (isClosing ? 0 : static_cast<int64_t>(used_) + kTypicalBytes) - reportedBytes_;
  if (!isClosing && change < kReportedBytes && change > -kReportedBytes) return;
  int64_t now = 0;
  napi_adjust_external_memory(env_, change, &now);
  reportedBytes_ += change;
}

void LuaVm::takeMessage(lua_State* state) {
  // Numbers are not converted: that may need memory.
  size_t length = 0;
  const char* text = lua_type(state, -1) == LUA_TSTRING ? lua_tolstring(state, -1, &length) : nullptr;
  message_ = text != nullptr ? std::string(text, length) : "unspecified lua error";
}

}  // namespace baton
