// Bytes that the kernel has not accepted yet. They are in one block, which is allocated on demand and freed when it is empty, so that
// an idle connection needs no memory here.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace baton {

// Capacity of all queues of the calling thread in bytes.
inline thread_local uint64_t pendingCapacity = 0;

class PendingQueue {
 public:
  // Absolute limit of a queue, because sizes are 32 bits wide.
  static constexpr uint32_t kMaxBytes = 1u << 30;

  PendingQueue() = default;
  PendingQueue(PendingQueue&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        head_(std::exchange(other.head_, 0)),
        tail_(std::exchange(other.tail_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  PendingQueue& operator=(PendingQueue&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(head_, other.head_);
    std::swap(tail_, other.tail_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  PendingQueue(const PendingQueue&) = delete;
  PendingQueue& operator=(const PendingQueue&) = delete;
  ~PendingQueue() { clear(); }

  const uint8_t* data() const { return block_ + head_; }
  uint32_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }

  // Appends the ranges without their first `skip` bytes; `total` is the number of bytes after skipping. Returns false if
  // memory cannot be allocated.
  bool append(const iovec* ranges, int count, size_t skip, size_t total) {
    if (total > kMaxBytes - size() || !reserve(static_cast<uint32_t>(total))) return false;
    for (int i = 0; i < count; ++i) {
      const size_t length = ranges[i].iov_len;
      if (skip >= length) {
        skip -= length;
        continue;
      }
      memcpy(block_ + tail_, static_cast<const uint8_t*>(ranges[i].iov_base) + skip, length - skip);
      tail_ += static_cast<uint32_t>(length - skip);
      skip = 0;
    }
    return true;
  }

  void consume(uint32_t bytes) {
    head_ += bytes;
    if (empty()) clear();
  }

  void clear() {
    pendingCapacity -= capacity_;
    free(block_);
    block_ = nullptr;
    head_ = tail_ = capacity_ = 0;
  }

 private:
  static constexpr uint32_t kSmallest = 4096;

  // Moves the bytes to the front if they fill at most half of the block, otherwise doubles the block. Either way appending n bytes has
  // amortized cost O(n).
  bool reserve(uint32_t more) {
    if (more <= capacity_ - tail_) return true;
    const uint32_t live = size();
    if (live + more <= capacity_ / 2) {
      memmove(block_, block_ + head_, live);
    } else {
      uint32_t capacity = capacity_ * 2 > kSmallest ? capacity_ * 2 : kSmallest;
      if (capacity < live + more) capacity = live + more;
      auto* block = static_cast<uint8_t*>(malloc(capacity));
      if (block == nullptr) return false;
      if (live > 0) memcpy(block, block_ + head_, live);
      free(block_);
      pendingCapacity += capacity - capacity_;
      block_ = block;
      capacity_ = capacity;
    }
    head_ = 0;
    tail_ = live;
    return true;
  }

  uint8_t* block_ = nullptr;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t capacity_ = 0;
};

}  // namespace baton
