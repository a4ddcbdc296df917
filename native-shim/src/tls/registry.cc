#include "tls/registry.h"

#include <climits>

namespace baton {

// Never destroyed: threads may still use contexts while the process ends.
TlsRegistry& TlsRegistry::shared() {
  static TlsRegistry& registry = *new TlsRegistry();
  return registry;
}

int32_t TlsRegistry::add(std::shared_ptr<TlsContext> context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  do last_ = last_ == INT32_MAX ? 1 : last_ + 1;
  while (contexts_.count(last_) != 0);
  contexts_[last_] = std::move(context);
  return last_;
}

std::shared_ptr<TlsContext> TlsRegistry::find(int32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = contexts_.find(number);
  return found == contexts_.end() ? nullptr : found->second;
}

bool TlsRegistry::replace(int32_t to, int32_t from) {
  std::shared_ptr<TlsContext> last;  // destroyed outside of the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto replaced = contexts_.find(to);
  const auto found = contexts_.find(from);
  if (replaced == contexts_.end() || found == contexts_.end() || replaced == found) return false;
  last = std::move(replaced->second);
  replaced->second = std::move(found->second);
  contexts_.erase(found);
  return true;
}

void TlsRegistry::remove(int32_t number) {
  std::shared_ptr<TlsContext> last;  // destroyed outside of the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = contexts_.find(number);
  if (found == contexts_.end()) return;
  last = std::move(found->second);
  contexts_.erase(found);
}

size_t TlsRegistry::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return contexts_.size();
}

}  // namespace baton
