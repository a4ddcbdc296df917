// Functions of the process and of the calling thread.

#include <node_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/loop-watch.h"
#include "node/values.h"
#include "system/process.h"

namespace baton {
namespace {

napi_value endWithParent(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t signal;
  if (!readInt(env, arguments[0], "signal", 0, signal)) return nullptr;
  const int error = baton::endWithParent(signal);
  return error == 0 ? nullptr : throwErrno(env, "prctl", error);
}

napi_value reap(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t pid;
  if (!readInt(env, arguments[0], "pid", 1, pid)) return nullptr;
  const int ended = baton::reap(pid);
  if (ended < 0 && ended != -ECHILD) return throwErrno(env, "waitpid", -ended);
  return makeBool(env, ended == pid);
}

napi_value collectGarbage(napi_env env, napi_callback_info) {
  baton::collectGarbage(env);
  return nullptr;
}

napi_value trimMemory(napi_env, napi_callback_info) {
  baton::trimMemory();
  return nullptr;
}

napi_value releasePages(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  void* bytes;
  size_t size;
  int32_t offset;
  int32_t length;
  if (!readArray(env, arguments[0], "memory", napi_uint8_array, true, bytes, size) ||
      !readInt(env, arguments[1], "offset", 0, offset) || !readInt(env, arguments[2], "length", 0, length)) {
    return nullptr;
  }
  if (static_cast<size_t>(offset) + static_cast<size_t>(length) > size) {
    napi_throw_range_error(env, nullptr, "the pages are not part of the memory");
    return nullptr;
  }
  const int error = baton::releasePages(static_cast<uint8_t*>(bytes) + offset, static_cast<size_t>(length));
  return error == 0 ? nullptr : throwErrno(env, "madvise", error);
}

napi_value threadId(napi_env env, napi_callback_info) {
  return makeInt(env, static_cast<int32_t>(syscall(SYS_gettid)));
}

napi_value allowedProcessors(napi_env env, napi_callback_info) {
  const int count = baton::allowedProcessors();
  return count < 0 ? throwErrno(env, "sched_getaffinity", -count) : makeInt(env, count);
}

napi_value enableCoreDump(napi_env env, napi_callback_info) {
  const int error = baton::enableCoreDump();
  return error == 0 ? nullptr : throwErrno(env, "prctl", error);
}

}  // namespace

void bindProcess(napi_env env, napi_value exports) {
  addMethods(env, exports,
             {method("endWithParent", endWithParent), method("reap", reap), method("collectGarbage", collectGarbage),
              method("trimMemory", trimMemory), method("releasePages", releasePages), method("threadId", threadId),
              method("allowedProcessors", allowedProcessors), method("enableCoreDump", enableCoreDump), method("watchLoop", watchLoop)});
}

}  // namespace baton
