// Functions that write files at configured paths.

#include <node_api.h>

#include <string>
#include <utility>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/open-file.h"
#include "node/promised-work.h"
#include "node/values.h"
#include "system/output-file.h"

namespace baton {
namespace {

bool readPath(napi_env env, napi_value value, std::string& to) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) == napi_ok) {
    to.resize(length);
    napi_get_value_string_utf8(env, value, to.data(), length + 1, &length);
    if (to.find('\0') == std::string::npos) return true;
  }
  throwType(env, "path must be a string without NUL");
  return false;
}

napi_value answer(napi_env env, const PathError& error) {
  if (error) napi_throw(env, makeError(env, error.code, error.reason));
  return nullptr;
}

class Opening : public PromisedWork {
 public:
  std::string path;
  bool appends = false;

 protected:
  PathError run() override {
    OutputFile opened = baton::openOutput(path.c_str(), appends);
    fd_ = std::move(opened.fd);
    return std::move(opened.error);
  }
  napi_value result(napi_env env) override { return OpenFile::wrap(env, std::move(fd_)); }

 private:
  Descriptor fd_;
};

napi_value openOutput(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  bool appends;
  if (!readPath(env, arguments[0], path) || !readBool(env, arguments[1], "appends", appends)) return nullptr;
  OutputFile file = baton::openOutput(path.c_str(), appends);
  return file.error ? answer(env, file.error) : OpenFile::wrap(env, std::move(file.fd));
}

napi_value openOutputLater(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  auto opening = std::make_unique<Opening>();
  if (!readPath(env, arguments[0], opening->path) || !readBool(env, arguments[1], "appends", opening->appends)) {
    return nullptr;
  }
  return PromisedWork::queue(env, std::move(opening));
}

napi_value replaceFile(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  void* bytes;
  size_t length;
  if (!readPath(env, arguments[0], path) ||
      !readArray(env, arguments[1], "bytes", napi_uint8_array, false, bytes, length)) {
    return nullptr;
  }
  return answer(env, baton::replaceFile(path.c_str(), bytes, length));
}

napi_value checkOutput(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  if (!readPath(env, arguments[0], path)) return nullptr;
  return answer(env, baton::checkOutput(path.c_str()));
}

napi_value setSocketMode(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  int32_t mode;
  if (!readPath(env, arguments[0], path) || !readInt(env, arguments[1], "mode", 0, mode)) return nullptr;
  return answer(env, baton::setSocketMode(path.c_str(), static_cast<mode_t>(mode)));
}

}  // namespace

void bindFiles(napi_env env, napi_value exports) {
  addMethods(env, exports,
             {method("openOutput", openOutput), method("openOutputLater", openOutputLater),
              method("replaceFile", replaceFile), method("checkOutput", checkOutput),
              method("setSocketMode", setSocketMode)});
}

}  // namespace baton
