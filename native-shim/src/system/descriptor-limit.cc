#include "system/descriptor-limit.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <utility>
#include <vector>

#include "system/descriptor.h"

namespace baton {
namespace {

struct Waiting {
  const DescriptorLimit* who;
  double since;
};

// Of all threads, in the order in which they began. Never destroyed: threads may still run when static objects are.
std::mutex waitingMutex;
auto& waiting = *new std::vector<Waiting>;

auto placeOf(const DescriptorLimit* who) {
  return std::find_if(waiting.begin(), waiting.end(), [who](const Waiting& each) { return each.who == who; });
}

}  // namespace

bool DescriptorLimit::leavesReserve(int fd, double now) {
  keepUp(now);
  return leaves(kept_, fd);
}

void DescriptorLimit::accepted(int fd, double now) {
  waitNoMore();
  keepUp(now);
  scarce_ = scarce_ || !leaves(2 * kept_, fd + 1);
}

bool DescriptorLimit::mayAccept(int any, double now) {
  if (scarce_) keepUp(now);
  if (!scarce_) return true;
  const Descriptor next(fcntl(any, F_DUPFD_CLOEXEC, 0));
  if (next && leaves(2 * kept_, next.get())) return hasTurn_ = hasTurn_ || isItsTurn(now);
  hasTurn_ = false;
  offeredTo_ = nullptr;
  return false;
}

bool DescriptorLimit::isItsTurn(double now) {
  const std::lock_guard<std::mutex> lock(waitingMutex);
  if (waiting.empty() || waiting.front().who == this || now - waiting.front().since < kPatienceMs) {
    offeredTo_ = nullptr;
    return true;
  }
  if (std::exchange(offeredTo_, waiting.front().who) != waiting.front().who) offeredAt_ = now;
  if (now - offeredAt_ < kPatienceMs) return false;
  // Its thread is busy, or stuck: it waits anew when it asks again.
  waiting.erase(waiting.begin());
  return true;
}

void DescriptorLimit::wait(double now) {
  waits_ = true;
  const std::lock_guard<std::mutex> lock(waitingMutex);
  if (placeOf(this) == waiting.end()) waiting.push_back({this, now});
}

void DescriptorLimit::waitNoMore() {
  if (!std::exchange(waits_, false)) return;
  const std::lock_guard<std::mutex> lock(waitingMutex);
  const auto place = placeOf(this);
  if (place != waiting.end()) waiting.erase(place);
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
