// How near this process is to the most descriptors it may open (RLIMIT_NOFILE), and what connections leave to others. The
// number of a new descriptor tells it, because the kernel gives the lowest that is free.
#pragma once

#include <cstdint>

namespace baton {

class DescriptorLimit {
 public:
  // `reserve`: so many are left to others, but of a small limit at most one in kLeastShare.
  explicit DescriptorLimit(uint32_t reserve) : reserve_(reserve) {}
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { waitNoMore(); }

  // Whether the reserve can still be opened beside `fd`, which was opened just now.
  bool leavesReserve(int fd, double now);

  // Accepting leaves a second reserve, for connections that those who are accepted need. Told of each that was accepted, and
  // asked before the next one; `any` is a descriptor to make a copy of.
  void accepted(int fd, double now);
  bool mayAccept(int any, double now);

  // Accepting was refused, and will be asked for again; it waits until a connection is accepted, or nobody wants one. Whoever
  // frees a descriptor would always be the first to take it, and a thread that has none to free would wait for as long as that
  // goes on: what becomes free is left to those who have waited for long, the first of them first.
  void wait(double now);
  void waitNoMore();

 private:
  static constexpr uint32_t kLeastShare = 8;
  // It may be changed from outside (prlimit) at any time.
  static constexpr double kReadAgainMs = 1000;
  static constexpr double kPatienceMs = 200;

  void keepUp(double now);
  bool leaves(int count, int fd) const;
  bool isFreeAbove(int fd, int count) const;
  bool isItsTurn(double now);

  uint32_t reserve_;
  int limit_ = 0;
  int kept_ = 0;
  double readAt_ = -kReadAgainMs;
  // Hardly more than both reserves are free of the highest numbers: only trying tells what the next descriptor will be.
  bool scarce_ = false;
  bool waits_ = false;
  bool hasTurn_ = false;  // it takes all that are free: the next one may be a while in coming
  const DescriptorLimit* offeredTo_ = nullptr;  // whoever has waited longest, since offeredAt_
  double offeredAt_ = 0;
};

}  // namespace baton
