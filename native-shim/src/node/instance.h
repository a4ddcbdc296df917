// A transport and its JavaScript side: its arrays, its callback, its wrapper object, and the end of its thread.
#pragma once

#include <node_api.h>

#include <memory>

#include "transport/transport.h"

namespace baton {

class Instance final : public BatchHandler {
 public:
  // Opens a transport for a TransportOptions object and wraps it; nullptr after throwing.
  static napi_value create(napi_env env, napi_value options, const napi_property_descriptor* methods, size_t count);
  // Returns the instance of a wrapper object; throws and returns nullptr for any other object.
  static Instance* from(napi_env env, napi_value self);

  // nullptr once the transport is closed.
  Transport* transport() { return transport_ != nullptr && transport_->isOpen() ? transport_.get() : nullptr; }

  void beginTurn() override;
  void endTurn() override;
  Outcome handle(uint32_t from, uint32_t count) override;
  void reportException() override;
  void reportMistake(const char* what) override;
  void closed() override;
  int verdict(Id id, int error, int depth, X509* leaf, const std::string& rules) override;

 private:
  explicit Instance(napi_env env) : env_(env) {}
  ~Instance() = default;

  bool open(napi_value options);
  bool readCallback(napi_value options, const char* name, bool isOptional, napi_value& to);
  napi_value call(napi_ref callback, napi_value* arguments, size_t count);
  static void threadEnds(napi_async_cleanup_hook_handle hook, void* self);
  static void wrapperCollected(napi_env env, void* self, void* hint);
  void deleteWhenUnused();

  napi_env env_;
  napi_ref arrays_ = nullptr;    // an array that holds the typed arrays
  napi_ref callback_ = nullptr;  // onBatch
  napi_ref verdict_ = nullptr;   // onVerdict
  napi_ref exception_ = nullptr;
  napi_async_context context_ = nullptr;
  // For the current turn.
  napi_handle_scope handles_ = nullptr;
  napi_callback_scope callbacks_ = nullptr;
  napi_value onBatch_ = nullptr;
  napi_value global_ = nullptr;
  napi_async_cleanup_hook_handle hook_ = nullptr;
  std::unique_ptr<Transport> transport_;
  bool wrapped_ = false;
};

}  // namespace baton
