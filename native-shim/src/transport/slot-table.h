// A table of records with generation-checked IDs. Free slots are reused first in, first out, and only when more than kQuarantine of them
// are free, so that a stale ID stays invalid for millions of allocations.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace baton {

using Id = int32_t;

// Base of the records in a SlotTable.
struct SlotHeader {
  uint32_t nextFree = 0;
  uint16_t generation = 0;
  bool used = false;
};

template <typename Record>
class SlotTable {
 public:
  static constexpr int kSlotBits = 20;
  static constexpr uint32_t kMaxSlots = 1u << kSlotBits;
  static constexpr uint16_t kGenerationMask = (1u << 11) - 1;
  static constexpr uint32_t kQuarantine = 1024;

  // Returns the record, or nullptr for a stale or invalid ID. Records do not move.
  Record* find(Id id) {
    if (id < 0) return nullptr;
    const uint32_t slot = static_cast<uint32_t>(id) & (kMaxSlots - 1);
    if (slot >= slots_) return nullptr;
    Record& record = at(slot);
    return record.used && record.generation == (id >> kSlotBits) ? &record : nullptr;
  }

  // Returns the ID of a new record, or -1 if the table is full. Does not reuse the last `recent` released slots.
  Id allocate(uint32_t recent = 0) {
    uint32_t slot;
    if (free_ > recent && (free_ > kQuarantine || slots_ == kMaxSlots)) {
      slot = oldestFree_;
      oldestFree_ = at(slot).nextFree;
      --free_;
    } else if (slots_ < kMaxSlots) {
      if (slots_ % kChunk == 0) chunks_.push_back(std::make_unique<Record[]>(kChunk));
      slot = slots_++;
    } else {
      return -1;
    }
    Record& record = at(slot);
    record.used = true;
    ++size_;
    return static_cast<Id>(slot | static_cast<uint32_t>(record.generation) << kSlotBits);
  }

  // Destroys the record and invalidates its ID.
  void release(Id id) {
    Record* record = find(id);
    if (record == nullptr) return;
    Record fresh;
    fresh.generation = (record->generation + 1) & kGenerationMask;
    *record = std::move(fresh);
    const uint32_t slot = static_cast<uint32_t>(id) & (kMaxSlots - 1);
    if (free_++ == 0) {
      oldestFree_ = slot;
    } else {
      at(newestFree_).nextFree = slot;
    }
    newestFree_ = slot;
    --size_;
  }

  // Calls visit(id, record) for each record. visit may release that record.
  template <typename Visit>
  void forEach(Visit visit) {
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      Record& record = at(slot);
      if (record.used) visit(static_cast<Id>(slot | static_cast<uint32_t>(record.generation) << kSlotBits), record);
    }
  }

  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kChunk = 1024;

  Record& at(uint32_t slot) { return chunks_[slot / kChunk][slot % kChunk]; }

  std::vector<std::unique_ptr<Record[]>> chunks_;
  uint32_t slots_ = 0;
  uint32_t size_ = 0;
  uint32_t free_ = 0;
  uint32_t oldestFree_ = 0;
  uint32_t newestFree_ = 0;
};

}  // namespace baton
