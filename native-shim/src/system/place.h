// Where a path leads, found name by name, so that no link is followed that a stranger may have put there.
//
// In a directory to which all users may write, anybody can put a link in place of a file that a program is about to make: what it
// writes would then go where only that program may write. Such a link is followed only if root or the user of this process owns it.
// Each directory is held open while it is looked into, so a path that changes meanwhile leads nowhere else.
#pragma once

#include <sys/stat.h>

#include <string>

#include "system/descriptor.h"

namespace baton {

// Why a path is not used: an errno, or a reason of our own in plain words.
struct PathError {
  int code = 0;
  std::string reason;

  explicit operator bool() const { return code != 0; }
};

class Place {
 public:
  // Goes to the directory of the last name. That name itself may be a link: follow().
  PathError find(const char* path);

  // Goes on to where the link of the last name leads.
  PathError follow();

  int directory() const { return directory_.get(); }
  // "." where the path ends with a directory.
  const char* name() const { return name_.c_str(); }
  // The last name leads to what no path names, as those of descriptors in /proc do: only the kernel can follow it.
  bool isMagic() const { return isMagic_; }
  // All users may make files beside it; `isSticky`: and not take away those of others.
  bool isPublic() const { return (stats_.st_mode & S_IWOTH) != 0; }
  bool isSticky() const { return (stats_.st_mode & S_ISVTX) != 0; }
  uid_t owner() const { return stats_.st_uid; }
  // The path of the last name, as far as it is known.
  std::string path() const { return at_ + name_; }

 private:
  PathError descend();
  PathError enter(Descriptor directory);
  PathError readLink(const std::string& name, std::string& target);

  Descriptor directory_;
  struct stat stats_ = {};
  std::string name_;
  std::string rest_;
  // The path of the directory, with a slash behind it.
  std::string at_;
  int links_ = 0;
  bool isMagic_ = false;
};

// Whether files and links of that user are those of an administrator, or our own.
bool isTrusted(uid_t owner);

}  // namespace baton
