#include "node/open-file.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "node/arguments.h"
#include "node/promised-work.h"
#include "node/values.h"

namespace baton {
namespace {

class Closing : public PromisedWork {
 public:
  explicit Closing(Descriptor fd) : fd_(std::move(fd)) {}

 protected:
  // Network file systems report some failed writes only on close.
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

}  // namespace

napi_value OpenFile::wrap(napi_env env, Descriptor fd) {
  const auto finalize = [](napi_env, void* data, void*) { delete static_cast<OpenFile*>(data); };
  auto file = std::make_unique<OpenFile>(std::move(fd));
  const napi_property_descriptor properties[] = {
      {"fd", nullptr, nullptr, nullptr, nullptr, makeInt(env, file->fd_.get()), napi_enumerable, nullptr},
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
  // Without a wrapped object the file is already closed.
  napi_remove_wrap(env, Arguments(env, info).self(), &data);
  const std::unique_ptr<OpenFile> file(static_cast<OpenFile*>(data));
  return PromisedWork::queue(env, std::make_unique<Closing>(file == nullptr ? Descriptor() : std::move(file->fd_)));
}

}  // namespace baton
