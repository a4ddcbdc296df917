// The functions of the module that write files at paths which its user gives.
#pragma once

#include <node_api.h>

namespace baton {

napi_value openOutputFile(napi_env env, napi_callback_info info);
napi_value openOutputFileLater(napi_env env, napi_callback_info info);
napi_value replaceFileContent(napi_env env, napi_callback_info info);
napi_value checkOutputFile(napi_env env, napi_callback_info info);
napi_value setSocketFileMode(napi_env env, napi_callback_info info);

}  // namespace baton
