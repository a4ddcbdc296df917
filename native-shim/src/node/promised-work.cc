#include "node/promised-work.h"

#include <cerrno>

#include "node/values.h"

namespace baton {

napi_value PromisedWork::queue(napi_env env, std::unique_ptr<PromisedWork> work) {
  napi_value name;
  napi_value promise;
  PromisedWork* const raw = work.get();
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

void PromisedWork::execute(napi_env, void* data) {
  auto* self = static_cast<PromisedWork*>(data);
  self->error_ = self->run();
}

void PromisedWork::complete(napi_env env, napi_status status, void* data) {
  const std::unique_ptr<PromisedWork> self(static_cast<PromisedWork*>(data));
  napi_delete_async_work(env, self->work_);
  if (status != napi_ok) return;
  if (self->error_) napi_reject_deferred(env, self->deferred_, makeError(env, self->error_.code, self->error_.reason));
  else napi_resolve_deferred(env, self->deferred_, self->result(env));
}

}  // namespace baton
