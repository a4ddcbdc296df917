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

// Far above any kernel's configuration; only bounds the loop below.
constexpr int kMaxProcessors = 1 << 20;
// Far larger than any heap.
constexpr int64_t kPressureBytes = int64_t{1} << 40;
constexpr int kCollections = 3;

}  // namespace

int allowedProcessors() {
  // The kernel refuses a mask that is smaller than its own, whose size is unknown: a cpu_set_t has 1024 CPUs, larger machines need more.
  for (int processors = CPU_SETSIZE; processors <= kMaxProcessors; processors *= 2) {
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
  // Sets only the flag, as Envoy does: a process loses it when it changes its user or runs from an unreadable file. The size of a core
  // stays limited by RLIMIT_CORE.
  return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno;
}

int endWithParent(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) == 0 ? 0 : errno; }

int reap(int pid) {
  const int ended = waitpid(pid, nullptr, WNOHANG);
  return ended >= 0 ? ended : -errno;
}

void collectGarbage(napi_env env) {
  // Node-API has no call for this. Reporting external memory of more than half of the maximum heap makes V8 collect at once and return
  // pages; by itself it does that only after eight idle seconds. Finalizers of the first collection free objects for the second, and the
  // third drops the code of modules that have run.
  for (int times = 0; times < kCollections; times++) {
    int64_t total;
    if (napi_adjust_external_memory(env, kPressureBytes, &total) != napi_ok) return;
    napi_adjust_external_memory(env, -kPressureBytes, &total);
  }
}

void trimMemory() {
  // Otherwise a thread's freed memory stays resident in the C library's heap: 5 MB after a configuration was loaded.
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
