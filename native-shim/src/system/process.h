// Knobs of the process itself.
#pragma once

#include <node_api.h>

#include <cstddef>

namespace baton {

// CPUs in the affinity mask of the calling thread, or -errno.
int allowedProcessors();

// 0 or errno.
int enableCoreDump();

// The process gets `signal` when the process that started it ends; 0 or errno.
int endWithParent(int signal);

// Takes the status of a child that has ended. The pid, 0 when it still runs, or -errno (ECHILD: no child of ours).
int reap(int pid);

// Collects the garbage of the calling thread's heap, and gives what becomes free back to the kernel.
void collectGarbage(napi_env env);

// Gives memory that the C library holds and nobody uses back to the kernel.
void trimMemory();

// Gives the pages that lie wholly in [start, start + length) back to the kernel: they read as zeros from then on. 0 or errno.
int releasePages(void* start, size_t length);

}  // namespace baton
