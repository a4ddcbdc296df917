// The entry point of the module, which implements src/io/shim.ts. Each thread that loads it gets its own instance.

#include <node_api.h>

#include "node/bindings.h"

namespace baton {
namespace {

napi_value initialize(napi_env env, napi_value exports) {
  bindTransports(env, exports);
  bindDatagrams(env, exports);
  bindSockets(env, exports);
  bindMessages(env, exports);
  bindFiles(env, exports);
  bindProcess(env, exports);
  bindTls(env, exports);
  return exports;
}

}  // namespace
}  // namespace baton

NAPI_MODULE(shim, baton::initialize)
