#include "system/place.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

namespace baton {

namespace {

// The kernel's limit.
constexpr int kMaxLinks = 40;
constexpr int kPathOnly = O_PATH | O_CLOEXEC;

}  // namespace

bool isTrusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

PathError Place::find(const char* path) {
  if (*path == '\0') return {ENOENT, {}};
  const bool isAbsolute = *path == '/';
  at_ = isAbsolute ? "/" : "";
  rest_ = path;
  if (PathError error = enter(Descriptor(open(isAbsolute ? "/" : ".", kPathOnly | O_DIRECTORY)))) return error;
  return descend();
}

PathError Place::follow() {
  std::string target;
  if (PathError error = readLink(name_, target)) return error;
  if (isMagic_) return {};
  rest_ = std::move(target);
  return descend();
}

PathError Place::descend() {
  for (;;) {
    rest_.erase(0, rest_.find_first_not_of('/'));
    const size_t end = rest_.find('/');
    std::string name = rest_.substr(0, end);
    if (end == std::string::npos && !name.empty() && name != "." && name != "..") {
      name_ = std::move(name);
      return {};
    }
    rest_.erase(0, end);
    if (name.empty()) {
      name_ = ".";
      return {};
    }
    if (name == ".") continue;
    Descriptor next(openat(directory(), name.c_str(), kPathOnly | O_DIRECTORY | O_NOFOLLOW));
    if (!next) {
      if (errno != ENOTDIR) return {errno, {}};
      std::string target;
      if (PathError error = readLink(name, target)) return error;
      if (!isMagic_) {
        rest_ = target + "/" + rest_;
        continue;
      }
      isMagic_ = false;
      next = Descriptor(openat(directory(), name.c_str(), kPathOnly | O_DIRECTORY));
    }
    at_ += name + "/";
    if (PathError error = enter(std::move(next))) return error;
  }
}

PathError Place::enter(Descriptor directory) {
  if (!directory || fstat(directory.get(), &stats_) != 0) return {errno, {}};
  directory_ = std::move(directory);
  return {};
}

PathError Place::readLink(const std::string& name, std::string& target) {
  const Descriptor link(openat(directory(), name.c_str(), kPathOnly | O_NOFOLLOW));
  struct stat stats;
  struct statfs system;
  if (!link || fstat(link.get(), &stats) != 0 || fstatfs(link.get(), &system) != 0) return {errno, {}};
  if (!S_ISLNK(stats.st_mode)) return {ENOTDIR, {}};
  if (++links_ > kMaxLinks) return {ELOOP, {}};
  if (isPublic() && !isTrusted(stats.st_uid)) {
    return {EPERM, "'" + at_ + name + "' is a link of user " + std::to_string(stats.st_uid) +
                       " in a directory to which all users may write: it is not followed"};
  }
  if (system.f_type == PROC_SUPER_MAGIC) {
    isMagic_ = true;
    return {};
  }
  char text[PATH_MAX];
  // Read by the descriptor, so it is the link whose owner was checked.
  const ssize_t length = readlinkat(link.get(), "", text, sizeof text);
  if (length < 0) return {errno, {}};
  target.assign(text, static_cast<size_t>(length));
  if (target.empty()) return {ENOENT, {}};
  if (target[0] != '/') return {};
  at_ = "/";
  return enter(Descriptor(open("/", kPathOnly | O_DIRECTORY)));
}

}  // namespace baton
