#include "system/output-file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace baton {

namespace {

constexpr mode_t kMode = 0644;
constexpr int kWrite = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
// Attempts to open a file that is created and removed concurrently.
constexpr int kTries = 16;
// Since Linux 6.6; not defined in all headers.
constexpr long kFchmodat2 = 452;

PathError lastError() {
  if (errno == ENXIO) return {ENXIO, "the pipe has no reader, or the file is a socket"};
  return {errno, {}};
}

// Returns why an existing file must not be written to.
PathError refusalFor(const Place& place, const struct stat& stats) {
  const bool isRegular = S_ISREG(stats.st_mode);
  if (S_ISDIR(stats.st_mode)) return {EISDIR, {}};
  if (place.isMagic() || !place.isPublic() || (!isRegular && !S_ISFIFO(stats.st_mode))) return {};
  if (place.isSticky() && !isTrusted(stats.st_uid) && stats.st_uid != place.owner()) {
    return {EPERM, "'" + place.path() + "' belongs to user " + std::to_string(stats.st_uid) +
                       ", and all users may make files in its directory: it is not written to"};
  }
  if (isRegular && stats.st_nlink > 1) {
    return {EPERM, "'" + place.path() + "' has further names (hard links), and all users may make files in its directory: " +
                       "it is not written to"};
  }
  return {};
}

// Opens the file at the place, or creates it.
OutputFile openAt(Place& place, int flags) {
  for (int tries = 0; tries < kTries; tries++) {
    const int noFollow = place.isMagic() ? 0 : O_NOFOLLOW;
    Descriptor fd(openat(place.directory(), place.name(), kWrite | flags | noFollow));
    if (fd) {
      struct stat stats;
      if (fstat(fd.get(), &stats) != 0) return {{}, lastError()};
      PathError error = refusalFor(place, stats);
      if (error) return {{}, std::move(error)};
      return {std::move(fd), {}};
    }
    if (errno == ELOOP && noFollow != 0) {
      tries = 0;
      if (PathError error = place.follow()) return {{}, std::move(error)};
      continue;
    }
    if (errno != ENOENT || noFollow == 0) return {{}, lastError()};
    fd = Descriptor(openat(place.directory(), place.name(), kWrite | flags | O_NOFOLLOW | O_CREAT | O_EXCL, kMode));
    if (fd) return {std::move(fd), {}};
    if (errno != EEXIST) return {{}, lastError()};
  }
  return {{}, {EEXIST, {}}};
}

PathError writeAll(int fd, const void* bytes, size_t length) {
  const auto* next = static_cast<const uint8_t*>(bytes);
  while (length > 0) {
    const ssize_t count = write(fd, next, length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return lastError();
    next += count;
    length -= static_cast<size_t>(count);
  }
  return {};
}

PathError writeInPlace(Place& place, const void* bytes, size_t length) {
  OutputFile file = openAt(place, 0);
  if (file.error) return std::move(file.error);
  struct stat stats;
  if (fstat(file.fd.get(), &stats) != 0) return lastError();
  if (S_ISREG(stats.st_mode) && ftruncate(file.fd.get(), 0) != 0) return lastError();
  return writeAll(file.fd.get(), bytes, length);
}

PathError writeAndRename(const Place& place, const void* bytes, size_t length) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return {EAGAIN, {}};
  char name[64];
  snprintf(name, sizeof name, ".baton-%d-%016llx", static_cast<int>(getpid()), static_cast<unsigned long long>(random));
  const Descriptor fd(openat(place.directory(), name, kWrite | O_CREAT | O_EXCL | O_NOFOLLOW, kMode));
  if (!fd) return lastError();
  PathError error = writeAll(fd.get(), bytes, length);
  if (!error && renameat(place.directory(), name, place.directory(), place.name()) != 0) error = lastError();
  if (error) unlinkat(place.directory(), name, 0);
  return error;
}

// Where files cannot be created or renamed, an existing one may still be writable: in another user's directory, or as a mount point.
bool mayWriteInPlace(int error) { return error == EACCES || error == EPERM || error == EROFS || error == EBUSY; }

// Reads the attributes of the file at the place after following links. `exists` is false if a file could be created.
PathError inspect(Place& place, struct stat& stats, bool& exists) {
  for (;;) {
    const int noFollow = place.isMagic() ? 0 : AT_SYMLINK_NOFOLLOW;
    exists = fstatat(place.directory(), place.name(), &stats, noFollow) == 0;
    if (!exists) return errno == ENOENT && noFollow != 0 ? PathError{} : lastError();
    if (!S_ISLNK(stats.st_mode)) return {};
    if (PathError error = place.follow()) return error;
  }
}

}  // namespace

OutputFile openOutput(const char* path, bool appends) {
  Place place;
  if (PathError error = place.find(path)) return {{}, std::move(error)};
  return openAt(place, appends ? O_APPEND : 0);
}

PathError replaceFile(const char* path, const void* bytes, size_t length) {
  Place place;
  PathError error = place.find(path);
  if (error) return error;
  struct stat stats;
  bool exists;
  if ((error = inspect(place, stats, exists))) return error;
  if (exists && (place.isMagic() || !S_ISREG(stats.st_mode))) return writeInPlace(place, bytes, length);
  error = writeAndRename(place, bytes, length);
  return exists && mayWriteInPlace(error.code) ? writeInPlace(place, bytes, length) : error;
}

PathError checkOutput(const char* path) {
  Place place;
  PathError error = place.find(path);
  if (error) return error;
  struct stat stats;
  bool exists;
  if ((error = inspect(place, stats, exists)) || (exists && (error = refusalFor(place, stats)))) return error;
  const char* const written = exists ? place.name() : ".";
  return faccessat(place.directory(), written, W_OK, AT_EACCESS) == 0 ? PathError{} : lastError();
}

PathError setSocketMode(const char* path, mode_t mode) {
  Place place;
  if (PathError error = place.find(path)) return error;
  const Descriptor fd(openat(place.directory(), place.name(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat stats;
  if (!fd || fstat(fd.get(), &stats) != 0) return lastError();
  if (!S_ISSOCK(stats.st_mode)) return {ENOTSOCK, {}};
  if (syscall(kFchmodat2, fd.get(), "", mode, AT_EMPTY_PATH) == 0) return {};
  if (errno != ENOSYS && errno != EPERM) return lastError();
  // For older kernels, and for sandboxes that refuse unknown system calls.
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd.get());
  return chmod(link, mode) == 0 ? PathError{} : lastError();
}

}  // namespace baton
