#include "system/process.h"

#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace baton {

namespace {

// Far above what any kernel is configured for: a bound for the loop below, not a limit.
constexpr int kMostProcessors = 1 << 20;
// Far more than any heap may have.
constexpr int64_t kPressureBytes = int64_t{1} << 40;
constexpr int kCollections = 3;

}  // namespace

int allowedProcessors() {
  // The kernel refuses a mask that is smaller than its own, whose size nobody tells: 1024 CPUs fit a cpu_set_t, larger
  // machines need more.
  for (int processors = CPU_SETSIZE; processors <= kMostProcessors; processors *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(processors));
    if (mask == nullptr) return -ENOMEM;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(processors));
    const int failure = sched_getaffinity(0, bytes, mask) == 0 ? 0 : errno;
    const int count = failure == 0 ? CPU_COUNT_S(bytes, mask) : -failure;
    CPU_FREE(mask);
    if (failure != EINVAL) return count;
  }
  return -EINVAL;
}

int enableCoreDump() {
  // The flag alone, as Envoy does: a process loses it when it changes its user or runs from a file that it may not read.
  // How large a core may be stays what the operator has set (RLIMIT_CORE).
  return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno;
}

int endWithParent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) == 0 ? 0 : errno; }

int reap(int pid) {
  const int ended = waitpid(pid, nullptr, WNOHANG);
  return ended >= 0 ? ended : -errno;
}

void collectGarbage(napi_env env) {
  // Node-API has no call for it. Memory beyond half of the largest heap that the engine is told of makes it collect at once
  // and give pages back; V8 by itself does that only after eight seconds without work. The first time finalizers free what
  // the second one finds, and code of modules that have run is dropped by the third.
  for (int times = 0; times < kCollections; times++) {
    int64_t total;
    if (napi_adjust_external_memory(env, kPressureBytes, &total) != napi_ok) return;
    napi_adjust_external_memory(env, -kPressureBytes, &total);
  }
}

void trimMemory() {
  // What a thread leaves in the C library's heap stays resident otherwise: 5 MB after a configuration was loaded.
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

int releasePages(void* start, size_t length) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(start);
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + length) / page * page;
  if (first >= end) return 0;
  return madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED) == 0 ? 0 : errno;
}

}  // namespace baton
