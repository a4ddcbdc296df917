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

// The waiting threads in FIFO order. Never destroyed: threads may outlive static objects.
std::mutex waitingMutex;
auto& waiting = *new std::vector<Waiting>;

auto placeOf(const DescriptorLimit* who) {
  return std::find_if(waiting.begin(), waiting.end(), [who](const Waiting& each) { return each.who == who; });
}

}  // namespace

bool DescriptorLimit::leavesReserve(int fd, double now) {
  refreshLimit(now);
  return leaves(kept_, fd);
}

void DescriptorLimit::accepted(int fd, double now) {
  stopWaiting();
  refreshLimit(now);
  scarce_ = scarce_ || !leaves(2 * kept_, fd + 1);
}

bool DescriptorLimit::mayAccept(int any, double now) {
  if (scarce_) refreshLimit(now);
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
  // Its thread is busy or stuck. It waits again when it next fails to accept.
  waiting.erase(waiting.begin());
  return true;
}

void DescriptorLimit::wait(double now) {
  waits_ = true;
  const std::lock_guard<std::mutex> lock(waitingMutex);
  if (placeOf(this) == waiting.end()) waiting.push_back({this, now});
}

void DescriptorLimit::stopWaiting() {
  if (!std::exchange(waits_, false)) return;
  const std::lock_guard<std::mutex> lock(waitingMutex);
  const auto place = placeOf(this);
  if (place != waiting.end()) waiting.erase(place);
}

// Far below the limit a comparison suffices, because the kernel assigns the lowest free number.
bool DescriptorLimit::leaves(int count, int fd) const { return fd < limit_ - 4 * kept_ || isFreeAbove(fd, count); }

// Some of the highest numbers may be in use: inherited, or by the users of the reserve.
bool DescriptorLimit::isFreeAbove(int fd, int count) const {
  for (int number = limit_ - 1; number > fd && count > 0; --number) {
    if (fcntl(number, F_GETFD) < 0) --count;
  }
  return count <= 0;
}

void DescriptorLimit::refreshLimit(double now) {
  if (now - readAt_ < kReadAgainMs) return;
  readAt_ = now;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto most = static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
  limit_ = static_cast<int>(most);
  kept_ = static_cast<int>(std::min(reserve_, most / kReserveDivisor));
  scarce_ = scarce_ && !isFreeAbove(limit_ - 4 * kept_, 2 * kept_ + 1);
}

}  // namespace baton
