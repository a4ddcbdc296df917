// An open file as JavaScript has it: its descriptor for node:fs, and close().
#pragma once

#include <node_api.h>

#include <utility>

#include "system/descriptor.h"

namespace baton {

// Closed with its object at the latest: at the end of the thread, which Node does not do for descriptors of addons.
class OpenFile {
 public:
  explicit OpenFile(Descriptor fd) : fd_(std::move(fd)) {}

  // The object; nullptr after throwing.
  static napi_value wrap(napi_env env, Descriptor fd);

 private:
  static napi_value close(napi_env env, napi_callback_info info);

  Descriptor fd_;
};

}  // namespace baton
