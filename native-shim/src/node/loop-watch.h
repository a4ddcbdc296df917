// Measures each turn of the calling thread's event loop, until the thread ends.
#pragma once

#include <node_api.h>

namespace baton {

// watchLoop(samples: Uint32Array): see NativeShim in src/io/shim.ts.
napi_value watchLoop(napi_env env, napi_callback_info info);

}  // namespace baton
