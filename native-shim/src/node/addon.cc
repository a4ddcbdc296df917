// The module as JavaScript loads it: src/io/shim.ts in functions. Each thread that loads it gets an instance of its own.

#include <node_api.h>

#include "node/bindings.h"

namespace baton {
namespace {

napi_value initialize(napi_env env, napi_value exports) {
  bindTransports(env, exports);
  bindSockets(env, exports);
  bindMessages(env, exports);
  bindFiles(env, exports);
  bindProcess(env, exports);
  return exports;
}

}  // namespace
}  // namespace baton

NAPI_MODULE(shim, baton::initialize)
