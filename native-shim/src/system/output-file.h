// Files that this process writes at paths that its user gives: logs, profiles, values for scripts, permissions of sockets.
//
// No call follows a link of a stranger (see place.h), and none writes into a file that a stranger has put into a directory to which
// all users may write, or of which he has made a second name there. None waits for the reader of a pipe.
#pragma once

#include <cstddef>

#include "system/descriptor.h"
#include "system/place.h"

namespace baton {

struct OutputFile {
  Descriptor fd;
  PathError error;
};

// Opens a file to write to, non-blocking; a new one has mode 0644 or what the umask leaves of that. With `appends` each write goes
// to its end.
OutputFile openOutput(const char* path, bool appends);

// Replaces what a file holds. A regular one is written beside and renamed, so that readers see the old content or the new; where
// that is not allowed, and in pipes and devices, it is written in place.
PathError replaceFile(const char* path, const void* bytes, size_t length);

// Whether openOutput() would succeed, as far as that can be seen without opening or making anything.
PathError checkOutput(const char* path);

// Sets the permissions of the file of a Unix socket, and of nothing else.
PathError setSocketMode(const char* path, mode_t mode);

}  // namespace baton
