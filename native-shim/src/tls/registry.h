// The TLS contexts of the process, by number: a thread makes one, and every thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tls/context.h"

namespace baton {

class TlsRegistry {
 public:
  static TlsRegistry& shared();

  // Returns the number of a context, above 0.
  int32_t add(std::shared_ptr<TlsContext> context);
  // Returns nullptr for an unknown number.
  std::shared_ptr<TlsContext> find(int32_t number);
  // Puts the context `from` in place of `to`, whose connections keep it until they end. `from` is no number any more. Returns false, with
  // nothing changed, for an unknown number.
  bool replace(int32_t to, int32_t from);
  // Connections keep a removed context until they end.
  void remove(int32_t number);
  size_t size();

 private:
  std::mutex mutex_;
  std::unordered_map<int32_t, std::shared_ptr<TlsContext>> contexts_;
  int32_t last_ = 0;
};

}  // namespace baton
