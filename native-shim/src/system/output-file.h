// Writes files at configured paths: logs, profiles, values for scripts, permissions of sockets.
//
// No call follows an untrusted user's link (see place.h), or writes to a file that an untrusted user has created or hard-linked in a
// world-writable directory. No call waits for the reader of a pipe.
#pragma once

#include <cstddef>

#include "system/descriptor.h"
#include "system/place.h"

namespace baton {

struct OutputFile {
  Descriptor fd;
  PathError error;
};

// Opens a file for non-blocking writes. A new file has mode 0644 less the umask. With `appends` each write appends.
OutputFile openOutput(const char* path, bool appends);

// Replaces the content of a file. A regular file is replaced by renaming a new one, so that readers see the old or the new content. Where
// that is not permitted, and for pipes and devices, it is written in place.
PathError replaceFile(const char* path, const void* bytes, size_t length);

// Checks whether openOutput() would succeed, as far as possible without opening or creating a file.
PathError checkOutput(const char* path);

// Sets the permissions of a Unix socket's file; refuses other files.
PathError setSocketMode(const char* path, mode_t mode);

}  // namespace baton
