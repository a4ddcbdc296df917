// Resolves a path name by name, so that no link is followed that an untrusted user may have created.
//
// In a world-writable directory any user can create a link in place of a file that a program is about to create, and so redirect its writes
// to files that only the program may write. Such a link is followed only if root or the user of this process owns it. Each directory is
// held open while names in it are resolved, so concurrent changes of the path cannot redirect it.
#pragma once

#include <sys/stat.h>

#include <string>

#include "system/descriptor.h"

namespace baton {

// Why a path is refused: an errno, and possibly a more specific reason.
struct PathError {
  int code = 0;
  std::string reason;

  explicit operator bool() const { return code != 0; }
};

class Place {
 public:
  // Resolves the path up to its last name, which may itself be a link: see follow().
  PathError find(const char* path);

  // Follows the link that is the last name.
  PathError follow();

  int directory() const { return directory_.get(); }
  // "." if the path ends with a slash or a dot name.
  const char* name() const { return name_.c_str(); }
  // The last name is a magic link, such as those of descriptors in /proc, which only the kernel can follow.
  bool isMagic() const { return isMagic_; }
  // All users may create files in its directory; with `isSticky` they may not remove those of other users.
  bool isPublic() const { return (stats_.st_mode & S_IWOTH) != 0; }
  bool isSticky() const { return (stats_.st_mode & S_ISVTX) != 0; }
  uid_t owner() const { return stats_.st_uid; }
  // The resolved path.
  std::string path() const { return at_ + name_; }

 private:
  PathError descend();
  PathError enter(Descriptor directory);
  PathError readLink(const std::string& name, std::string& target);

  Descriptor directory_;
  struct stat stats_ = {};
  std::string name_;
  std::string rest_;
  // The path of the directory, with a final slash.
  std::string at_;
  int links_ = 0;
  bool isMagic_ = false;
};

// Returns whether the owner is root or the user of this process.
bool isTrusted(uid_t owner);

}  // namespace baton
