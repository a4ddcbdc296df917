#include "descriptor-limit.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>

#include "descriptor.h"

namespace baton {

bool DescriptorLimit::leavesReserve(int fd, double now) {
  keepUp(now);
  return leaves(kept_, fd);
}

void DescriptorLimit::accepted(int fd, double now) {
  keepUp(now);
  scarce_ = scarce_ || !leaves(2 * kept_, fd + 1);
}

bool DescriptorLimit::mayAccept(int any, double now) {
  if (scarce_) keepUp(now);
  if (!scarce_) return true;
  const Descriptor next(fcntl(any, F_DUPFD_CLOEXEC, 0));
  return next && leaves(2 * kept_, next.get());
}

// Far from the limit comparing is enough: a low number takes the place of another one that has been closed.
bool DescriptorLimit::leaves(int count, int fd) const { return fd < limit_ - 4 * kept_ || isFreeAbove(fd, count); }

// Some of the highest numbers may be taken: inherited, or by those whom the reserve is for.
bool DescriptorLimit::isFreeAbove(int fd, int count) const {
  for (int number = limit_ - 1; number > fd && count > 0; --number) {
    if (fcntl(number, F_GETFD) < 0) --count;
  }
  return count <= 0;
}

void DescriptorLimit::keepUp(double now) {
  if (now - readAt_ < kReadAgainMs) return;
  readAt_ = now;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto most = static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
  limit_ = static_cast<int>(most);
  kept_ = static_cast<int>(std::min(reserve_, most / kLeastShare));
  scarce_ = scarce_ && !isFreeAbove(limit_ - 4 * kept_, 2 * kept_ + 1);
}

}  // namespace baton
