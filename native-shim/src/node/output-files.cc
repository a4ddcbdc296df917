#include "node/output-files.h"

#include <unistd.h>
#include <uv.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "node/arguments.h"
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

// An open file, closed with its object at the latest: at the end of the thread, which Node does not do for descriptors of addons.
struct OpenFile {
  Descriptor fd;

  static napi_value wrap(napi_env env, Descriptor fd);
  static napi_value close(napi_env env, napi_callback_info info);
};

// Work on a thread of libuv's, because a directory of the network may not answer for long. It settles a promise.
class Work {
 public:
  virtual ~Work() = default;
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // The promise; takes `work` over.
  static napi_value queue(napi_env env, std::unique_ptr<Work> work) {
    napi_value name;
    napi_value promise;
    Work* const raw = work.get();
    napi_create_string_utf8(env, "baton:file", NAPI_AUTO_LENGTH, &name);
    if (napi_create_promise(env, &raw->deferred_, &promise) != napi_ok ||
        napi_create_async_work(env, nullptr, name, execute, complete, raw, &raw->work_) != napi_ok) {
      return throwErrno(env, "file", ENOMEM);
    }
    if (napi_queue_async_work(env, raw->work_) != napi_ok) {
      napi_delete_async_work(env, raw->work_);
      return throwErrno(env, "file", EAGAIN);
    }
    work.release();
    return promise;
  }

 protected:
  virtual PathError run() = 0;
  // What the promise resolves with.
  virtual napi_value result(napi_env env) = 0;

 private:
  static void execute(napi_env, void* data) {
    auto* self = static_cast<Work*>(data);
    self->error_ = self->run();
  }

  static void complete(napi_env env, napi_status status, void* data) {
    const std::unique_ptr<Work> self(static_cast<Work*>(data));
    napi_delete_async_work(env, self->work_);
    if (status != napi_ok) return;
    if (self->error_) napi_reject_deferred(env, self->deferred_, makeError(env, self->error_.code, self->error_.reason));
    else napi_resolve_deferred(env, self->deferred_, self->result(env));
  }

  PathError error_;
  napi_deferred deferred_ = nullptr;
  napi_async_work work_ = nullptr;
};

class Opening : public Work {
 public:
  std::string path;
  bool appends = false;

 protected:
  PathError run() override {
    OutputFile opened = openOutput(path.c_str(), appends);
    fd_ = std::move(opened.fd);
    return std::move(opened.error);
  }
  napi_value result(napi_env env) override { return OpenFile::wrap(env, std::move(fd_)); }

 private:
  Descriptor fd_;
};

class Closing : public Work {
 public:
  explicit Closing(Descriptor fd) : fd_(std::move(fd)) {}

 protected:
  // Network file systems tell some failed writes only here.
  PathError run() override {
    if (!fd_) return {};
    return ::close(fd_.release()) == 0 || errno == EINTR ? PathError{} : PathError{errno, {}};
  }
  napi_value result(napi_env env) override {
    napi_value nothing = nullptr;
    napi_get_undefined(env, &nothing);
    return nothing;
  }

 private:
  Descriptor fd_;
};

napi_value OpenFile::wrap(napi_env env, Descriptor fd) {
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<OpenFile*>(data); };
  auto file = std::make_unique<OpenFile>(OpenFile{std::move(fd)});
  const napi_property_descriptor properties[] = {
      {"fd", nullptr, nullptr, nullptr, nullptr, makeInt(env, file->fd.get()), napi_enumerable, nullptr},
      {"close", nullptr, close, nullptr, nullptr, nullptr, napi_enumerable, nullptr}};
  napi_value made;
  if (napi_create_object(env, &made) != napi_ok ||
      napi_define_properties(env, made, sizeof properties / sizeof properties[0], properties) != napi_ok ||
      napi_wrap(env, made, file.get(), finalize, nullptr, nullptr) != napi_ok) {
    return throwErrno(env, "openOutput", ENOMEM);
  }
  file.release();
  return made;
}

napi_value OpenFile::close(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  // Without what it wrapped the object is closed already.
  napi_remove_wrap(env, Arguments(env, info).self(), &data);
  const std::unique_ptr<OpenFile> file(static_cast<OpenFile*>(data));
  return Work::queue(env, std::make_unique<Closing>(file == nullptr ? Descriptor() : std::move(file->fd)));
}

}  // namespace

napi_value openOutputFile(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  bool appends;
  if (!readPath(env, arguments[0], path) || !readBool(env, arguments[1], "appends", appends)) return nullptr;
  OutputFile file = openOutput(path.c_str(), appends);
  return file.error ? answer(env, file.error) : OpenFile::wrap(env, std::move(file.fd));
}

napi_value openOutputFileLater(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  auto opening = std::make_unique<Opening>();
  if (!readPath(env, arguments[0], opening->path) || !readBool(env, arguments[1], "appends", opening->appends)) {
    return nullptr;
  }
  return Work::queue(env, std::move(opening));
}

napi_value replaceFileContent(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  void* bytes;
  size_t length;
  if (!readPath(env, arguments[0], path) ||
      !readArray(env, arguments[1], "bytes", napi_uint8_array, false, bytes, length)) {
    return nullptr;
  }
  return answer(env, replaceFile(path.c_str(), bytes, length));
}

napi_value checkOutputFile(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  if (!readPath(env, arguments[0], path)) return nullptr;
  return answer(env, checkOutput(path.c_str()));
}

napi_value setSocketFileMode(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::string path;
  int32_t mode;
  if (!readPath(env, arguments[0], path) || !readInt(env, arguments[1], "mode", 0, mode)) return nullptr;
  return answer(env, setSocketMode(path.c_str(), static_cast<mode_t>(mode)));
}

}  // namespace baton
