// The TLS contexts of the process, by number. A context that one thread adds can be used by every thread.
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

  // Adds a context. Returns its number, which is above 0.
  int32_t add(std::shared_ptr<TlsContext> context);
  // Returns nullptr for an unknown number.
  std::shared_ptr<TlsContext> find(int32_t number);
  // Gives the context of number `from` the number `to`; `from` becomes unknown. Connections of the replaced context keep it until they
  // end. Returns false without a change if a number is unknown.
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
