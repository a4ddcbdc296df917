// Keeps connections from using the last descriptors below RLIMIT_NOFILE. The number of a new descriptor shows how close the process is to
// the limit, because the kernel assigns the lowest free number.
#pragma once

#include <cstdint>

namespace baton {

class DescriptorLimit {
 public:
  // `reserve`: descriptors that connections may not use, capped at 1/kReserveDivisor of the limit.
  explicit DescriptorLimit(uint32_t reserve) : reserve_(reserve) {}
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { stopWaiting(); }

  // Returns whether the reserve is still free after `fd` was opened.
  bool leavesReserve(int fd, double now);

  // Accepting leaves a second reserve free, for upstream connections of accepted clients. accepted() is called after each accept and
  // mayAccept() before the next; `any` is a descriptor that can be duplicated.
  void accepted(int fd, double now);
  bool mayAccept(int any, double now);

  // wait() is called when mayAccept() returns false and accepting will be retried; the wait ends when a connection is accepted or none is
  // left to accept. Without an order, a thread that frees a descriptor would always reuse it itself, and a thread without any to free would
  // starve. So free descriptors go to long-waiting threads first, in FIFO order.
  void wait(double now);
  void stopWaiting();

 private:
  static constexpr uint32_t kReserveDivisor = 8;
  // The limit may be changed from outside (prlimit) at any time.
  static constexpr double kReadAgainMs = 1000;
  static constexpr double kPatienceMs = 200;

  void refreshLimit(double now);
  bool leaves(int count, int fd) const;
  bool isFreeAbove(int fd, int count) const;
  bool isItsTurn(double now);

  uint32_t reserve_;
  int limit_ = 0;
  int kept_ = 0;
  double readAt_ = -kReadAgainMs;
  // Hardly more than both reserves are free among the highest numbers: the next descriptor's number must be determined by a trial.
  bool scarce_ = false;
  bool waits_ = false;
  bool hasTurn_ = false;  // accepts as long as descriptors are free: the next may take a while to become free
  const DescriptorLimit* offeredTo_ = nullptr;  // the longest-waiting one, since offeredAt_
  double offeredAt_ = 0;
};

}  // namespace baton
