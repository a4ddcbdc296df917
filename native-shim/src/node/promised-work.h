// Work on a thread of libuv's pool, because network file systems may block for long. It settles a promise.
#pragma once

#include <node_api.h>

#include <memory>

#include "system/place.h"

namespace baton {

class PromisedWork {
 public:
  virtual ~PromisedWork() = default;
  PromisedWork() = default;
  PromisedWork(const PromisedWork&) = delete;
  PromisedWork& operator=(const PromisedWork&) = delete;

  // Takes over `work` and returns its promise.
  static napi_value queue(napi_env env, std::unique_ptr<PromisedWork> work);

 protected:
  virtual PathError run() = 0;
  // Returns the value that the promise resolves with.
  virtual napi_value result(napi_env env) = 0;

 private:
  static void execute(napi_env env, void* data);
  static void complete(napi_env env, napi_status status, void* data);

  PathError error_;
  napi_deferred deferred_ = nullptr;
  napi_async_work work_ = nullptr;
};

}  // namespace baton
