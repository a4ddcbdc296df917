// The groups of functions that JavaScript calls. Each adds its functions to the module.
#pragma once

#include <node_api.h>

namespace baton {

void bindTransports(napi_env env, napi_value exports);
void bindDatagrams(napi_env env, napi_value exports);
void bindSockets(napi_env env, napi_value exports);
void bindMessages(napi_env env, napi_value exports);
void bindFiles(napi_env env, napi_value exports);
void bindProcess(napi_env env, napi_value exports);
void bindTls(napi_env env, napi_value exports);

}  // namespace baton
