// An epoll set that owns its descriptor. Keys are 64-bit values that each event returns.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>

#include "system/descriptor.h"

namespace baton {

// Edge-triggered, with EPOLLOUT from the start: for TCP it fires only after a short send, so waiting for room needs no further system call.
constexpr uint32_t kConnectionInterest = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;

class EpollSet {
 public:
  EpollSet() : set_(epoll_create1(EPOLL_CLOEXEC)) {}

  int fd() const { return set_.get(); }
  // These return 0 or errno.
  int add(int fd, uint32_t events, uint64_t key) { return control(EPOLL_CTL_ADD, fd, events, key); }
  int change(int fd, uint32_t events, uint64_t key) { return control(EPOLL_CTL_MOD, fd, events, key); }
  int remove(int fd) { return control(EPOLL_CTL_DEL, fd, 0, 0); }

 private:
  int control(int op, int fd, uint32_t events, uint64_t key) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    return epoll_ctl(set_.get(), op, fd, &event) == 0 ? 0 : errno;
  }

  Descriptor set_;
};

}  // namespace baton
