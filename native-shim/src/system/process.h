// Functions of the process itself.
#pragma once

#include <node_api.h>

#include <cstddef>

namespace baton {

// Returns the number of CPUs in the affinity mask of the calling thread, or -errno.
int allowedProcessors();

// Returns 0 or errno.
int enableCoreDump();

// Makes the kernel send `signal` to this process when its parent ends. Returns 0 or errno.
int endWithParent(int signal);

// Reaps a child that has exited. Returns its pid, 0 if it still runs, or -errno (ECHILD: not a child).
int reap(int pid);

// Collects the garbage of the calling thread's heap and returns free pages to the kernel.
void collectGarbage(napi_env env);

// Returns unused memory of the C library to the kernel.
void trimMemory();

// Returns the pages that are entirely in [start, start + length) to the kernel; they then read as zeros. Returns 0 or errno.
int releasePages(void* start, size_t length);

}  // namespace baton
