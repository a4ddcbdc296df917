// Knobs of the process itself.
#pragma once

namespace baton {

// CPUs in the affinity mask of the calling thread, or -errno.
int allowedProcessors();

// 0 or errno.
int enableCoreDump();

// The process gets `signal` when the process that started it ends; 0 or errno.
int endWithParent(int signal);

// Takes the status of a child that has ended. The pid, 0 when it still runs, or -errno (ECHILD: no child of ours).
int reap(int pid);

// Gives memory that nobody uses back to the kernel.
void trimMemory();

}  // namespace baton
