// An open file for JavaScript: a descriptor for node:fs, and close().
#pragma once

#include <node_api.h>

#include <utility>

#include "system/descriptor.h"

namespace baton {

// The file is closed with its object at the latest, and so when the thread ends; Node does not close descriptors of addons.
class OpenFile {
 public:
  explicit OpenFile(Descriptor fd) : fd_(std::move(fd)) {}

  // Returns the object; nullptr after throwing.
  static napi_value wrap(napi_env env, Descriptor fd);

 private:
  static napi_value close(napi_env env, napi_callback_info info);

  Descriptor fd_;
};

}  // namespace baton
