#include "node/loop-watch.h"

#include <uv.h>

#include <algorithm>
#include <cstdint>

#include "node/arguments.h"

namespace baton {
namespace {

constexpr uint64_t kNsOfUs = 1000;
constexpr uint64_t kUsOfMs = 1000;

uint64_t nowUs() { return uv_hrtime() / kNsOfUs; }

uint32_t asSample(uint64_t us) { return static_cast<uint32_t>(std::min<uint64_t>(us, UINT32_MAX - 1)); }

// The handles run just before and just after the loop waits. They do not keep the loop alive.
class LoopWatch final {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `samples` has the number of samples, then pairs of a turn's duration and the delay of the wait before it.
  LoopWatch(uint32_t* samples, size_t length) : samples_(samples), room_(static_cast<uint32_t>((length - 1) / 2)) {}

  // Returns false after throwing.
  bool start(napi_env env, napi_value array) {
    uv_loop_t* loop = nullptr;
    if (napi_get_uv_event_loop(env, &loop) != napi_ok || napi_create_reference(env, array, 1, &array_) != napi_ok) {
      napi_throw_error(env, nullptr, "the event loop cannot be watched");
      return false;
    }
    env_ = env;
    uv_prepare_init(loop, &prepare_);
    uv_check_init(loop, &check_);
    prepare_.data = check_.data = this;
    uv_prepare_start(&prepare_, [](uv_prepare_t* handle) { static_cast<LoopWatch*>(handle->data)->turnEnds(); });
    uv_check_start(&check_, [](uv_check_t* handle) { static_cast<LoopWatch*>(handle->data)->turnBegins(); });
    uv_unref(reinterpret_cast<uv_handle_t*>(&prepare_));
    uv_unref(reinterpret_cast<uv_handle_t*>(&check_));
    napi_add_async_cleanup_hook(
        env,
        [](napi_async_cleanup_hook_handle hook, void* self) {
          auto* watch = static_cast<LoopWatch*>(self);
          watch->hook_ = hook;
          watch->close();
        },
        this, &hook_);
    return true;
  }

 private:
  void turnEnds() {
    const uint64_t now = nowUs();
    if (begunUs_ != 0 && samples_[0] < room_) {
      uint32_t* pair = samples_ + 1 + 2 * samples_[0]++;
      pair[0] = asSample(now - begunUs_);
      pair[1] = delay_;
    }
    endedUs_ = now;
    waitMs_ = uv_backend_timeout(prepare_.loop);
  }

  void turnBegins() {
    begunUs_ = nowUs();
    const uint64_t waited = begunUs_ - endedUs_;
    // Without a limit the loop waits for an event, which cannot be late.
    const uint64_t wanted = waitMs_ < 0 ? UINT64_MAX : static_cast<uint64_t>(waitMs_) * kUsOfMs;
    delay_ = waited < wanted ? kNone : asSample(waited - wanted);
  }

  void close() {
    const auto closed = [](uv_handle_t* handle) { static_cast<LoopWatch*>(handle->data)->handleClosed(); };
    uv_close(reinterpret_cast<uv_handle_t*>(&prepare_), closed);
    uv_close(reinterpret_cast<uv_handle_t*>(&check_), closed);
  }

  void handleClosed() {
    if (--open_ > 0) return;
    napi_delete_reference(env_, array_);
    napi_remove_async_cleanup_hook(hook_);
    delete this;
  }

  ~LoopWatch() = default;

  uint32_t* samples_;
  uint32_t room_;
  napi_env env_ = nullptr;
  napi_ref array_ = nullptr;  // keeps the samples alive
  napi_async_cleanup_hook_handle hook_ = nullptr;
  uv_prepare_t prepare_{};
  uv_check_t check_{};
  int open_ = 2;
  uint64_t begunUs_ = 0;
  uint64_t endedUs_ = 0;
  int waitMs_ = -1;
  uint32_t delay_ = kNone;
};

}  // namespace

napi_value watchLoop(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  void* data;
  size_t length;
  if (!readArray(env, arguments[0], "samples", napi_uint32_array, true, data, length)) return nullptr;
  if (length < 3) {
    napi_throw_range_error(env, nullptr, "samples has no room for one");
    return nullptr;
  }
  auto* watch = new LoopWatch(static_cast<uint32_t*>(data), length);
  watch->start(env, arguments[0]);
  return nullptr;
}

}  // namespace baton
