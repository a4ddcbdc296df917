#include "node/instance.h"

#include "node/arguments.h"
#include "node/tls-values.h"
#include "node/values.h"
#include "tls/certificate.h"

namespace baton {
namespace {

// Distinguishes transport wrappers from other objects with native data.
constexpr napi_type_tag kTag = {0x6261746f6e2d7368, 0x696d2d7472616e73};

bool refuse(napi_env env, const char* why) {
  throwType(env, why);
  return false;
}

struct ArrayRequest {
  const char* name;
  napi_typedarray_type type;
  void* data;
  size_t length;
};

bool readArrays(napi_env env, napi_value options, napi_value holder, Arrays& to) {
  ArrayRequest requests[] = {{"memory", napi_uint8_array, nullptr, 0},
                             {"events", napi_int32_array, nullptr, 0},
                             {"submissions", napi_int32_array, nullptr, 0},
                             {"control", napi_int32_array, nullptr, 0},
                             {"clock", napi_float64_array, nullptr, 0}};
  uint32_t index = 0;
  for (ArrayRequest& request : requests) {
    napi_value value = property(env, options, request.name);
    const bool shared = index == 0;
    if (!readArray(env, value, request.name, request.type, shared, request.data, request.length)) return false;
    napi_set_element(env, holder, index++, value);
  }
  const auto& [memory, events, submissions, control, clock] = requests;
  int32_t receiveBytes = 0;
  if (!readInt(env, property(env, options, "receiveBytes"), "receiveBytes", EventBatch::kWindowReserve, receiveBytes)) {
    return false;
  }
  to.memory = static_cast<uint8_t*>(memory.data);
  to.memoryBytes = memory.length;
  to.receiveBytes = static_cast<uint32_t>(receiveBytes);
  to.events = static_cast<int32_t*>(events.data);
  to.maxEvents = static_cast<uint32_t>(events.length / kEventStride);
  to.submissions = static_cast<int32_t*>(submissions.data);
  to.maxSubmissions = static_cast<uint32_t>(submissions.length / kSubmissionStride);
  to.control = static_cast<int32_t*>(control.data);
  to.clock = static_cast<double*>(clock.data);
  if (to.receiveBytes > to.memoryBytes) return refuse(env, "receiveBytes is more than memory holds");
  if (to.maxEvents < EventBatch::kEventReserve) return refuse(env, "events is too small");
  if (control.length < kControlAcceptedBy + to.maxEvents) return refuse(env, "control is too small");
  if (clock.length < 2) return refuse(env, "clock is too small");
  return true;
}

}  // namespace

napi_value Instance::create(napi_env env, napi_value options, const napi_property_descriptor* methods, size_t count) {
  napi_value wrapper;
  if (napi_create_object(env, &wrapper) != napi_ok ||
      napi_define_properties(env, wrapper, count, methods) != napi_ok ||
      napi_type_tag_object(env, wrapper, &kTag) != napi_ok) {
    return nullptr;
  }
  auto* instance = new Instance(env);
  if (napi_wrap(env, wrapper, instance, wrapperCollected, nullptr, nullptr) != napi_ok) {
    delete instance;
    return nullptr;
  }
  instance->wrapped_ = true;
  return instance->open(options) ? wrapper : nullptr;
}

Instance* Instance::from(napi_env env, napi_value self) {
  bool ours = false;
  void* instance = nullptr;
  if (napi_check_object_type_tag(env, self, &kTag, &ours) == napi_ok && ours) napi_unwrap(env, self, &instance);
  if (instance == nullptr) throwType(env, "called on something that is not a transport");
  return static_cast<Instance*>(instance);
}

bool Instance::open(napi_value options) {
  napi_value holder;
  napi_create_array(env_, &holder);
  Arrays arrays;
  if (!readArrays(env_, options, holder, arrays)) return false;
  napi_value callbacks[2];
  if (!readCallback(options, "onBatch", false, callbacks[0]) ||
      !readCallback(options, "onVerdict", true, callbacks[1])) {
    return false;
  }
  int32_t high = 0;
  int32_t hard = 0;
  int32_t receive = 0;
  int32_t reserve = 0;
  if (!readInt(env_, property(env_, options, "highWatermark"), "highWatermark", 0, high) ||
      !readInt(env_, property(env_, options, "hardLimit"), "hardLimit", 0, hard) ||
      !readInt(env_, property(env_, options, "receiveLimit"), "receiveLimit", 0, receive) ||
      !readInt(env_, property(env_, options, "reserve"), "reserve", 0, reserve)) {
    return false;
  }
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env_, &loop) != napi_ok) return false;
  const Transport::Limits limits{static_cast<uint32_t>(high), static_cast<uint32_t>(hard),
                                 static_cast<uint32_t>(receive)};
  transport_ = std::make_unique<Transport>(arrays, limits, static_cast<uint32_t>(reserve), *this);
  const int error = transport_->open(loop);
  if (error != 0) {
    if (transport_->isOpen()) {
      transport_->close();
    } else {
      transport_.reset();
    }
    throwErrno(env_, "createTransport", error);
    return false;
  }
  napi_create_reference(env_, holder, 1, &arrays_);
  napi_create_reference(env_, callbacks[0], 1, &callback_);
  if (callbacks[1] != nullptr) napi_create_reference(env_, callbacks[1], 1, &verdict_);
  napi_value name;
  napi_create_string_utf8(env_, "baton:transport", NAPI_AUTO_LENGTH, &name);
  napi_async_init(env_, nullptr, name, &context_);
  napi_add_async_cleanup_hook(env_, threadEnds, this, &hook_);
  return true;
}

// Reads a function of the options; nullptr if it is optional and absent. Returns false after throwing.
bool Instance::readCallback(napi_value options, const char* name, bool isOptional, napi_value& to) {
  to = nullptr;
  napi_value value = property(env_, options, name);
  if (isOptional && isAbsent(env_, value)) return true;
  napi_valuetype type = napi_undefined;
  if (value == nullptr || napi_typeof(env_, value, &type) != napi_ok || type != napi_function) {
    const std::string message = std::string(name) + " must be a function";
    return refuse(env_, message.c_str());
  }
  to = value;
  return true;
}

// All batches of a turn share one callback scope: it costs as much as the call into JavaScript itself, and under light traffic a batch has
// two or three events.
void Instance::beginTurn() {
  napi_open_handle_scope(env_, &handles_);
  napi_get_reference_value(env_, callback_, &onBatch_);
  napi_get_global(env_, &global_);
  napi_open_callback_scope(env_, nullptr, context_, &callbacks_);
}

void Instance::endTurn() {
  napi_close_callback_scope(env_, callbacks_);
  napi_close_handle_scope(env_, handles_);
}

BatchHandler::Outcome Instance::handle(uint32_t from, uint32_t count) {
  napi_value arguments[2];
  napi_create_uint32(env_, from, &arguments[0]);
  napi_create_uint32(env_, count, &arguments[1]);
  if (napi_call_function(env_, global_, onBatch_, 2, arguments, nullptr) == napi_ok) return Outcome::Done;
  bool pending = false;
  napi_value exception;
  if (napi_is_exception_pending(env_, &pending) != napi_ok || !pending ||
      napi_get_and_clear_last_exception(env_, &exception) != napi_ok) {
    return Outcome::Gone;
  }
  // In an array, because only objects can be referenced and any value can be thrown.
  napi_value holder;
  if (napi_create_array_with_length(env_, 1, &holder) != napi_ok ||
      napi_set_element(env_, holder, 0, exception) != napi_ok ||
      napi_create_reference(env_, holder, 1, &exception_) != napi_ok) {
    return Outcome::Gone;
  }
  return Outcome::Threw;
}

void Instance::reportException() {
  HandleScope scope(env_);
  napi_value holder;
  napi_value exception;
  napi_get_reference_value(env_, exception_, &holder);
  napi_get_element(env_, holder, 0, &exception);
  napi_delete_reference(env_, exception_);
  napi_fatal_exception(env_, exception);
}

void Instance::reportMistake(const char* what) {
  HandleScope scope(env_);
  napi_value message;
  napi_value error;
  if (napi_create_string_utf8(env_, what, NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_type_error(env_, nullptr, message, &error) == napi_ok) {
    napi_fatal_exception(env_, error);
  }
}

// Returns nullptr if the function has thrown; its own code reports what it throws.
napi_value Instance::call(napi_ref callback, napi_value* arguments, size_t count) {
  napi_value function = nullptr;
  napi_value result = nullptr;
  napi_get_reference_value(env_, callback, &function);
  if (napi_call_function(env_, global_, function, count, arguments, &result) == napi_ok) return result;
  napi_value exception = nullptr;
  napi_get_and_clear_last_exception(env_, &exception);
  return nullptr;
}

int Instance::verdict(Id id, int error, int depth, X509* leaf, const std::string& rules) {
  if (verdict_ == nullptr) return error;
  HandleScope scope(env_);
  napi_value arguments[] = {makeInt(env_, id),
                            makeInt(env_, error),
                            makeInt(env_, depth),
                            makeText(env_, X509_verify_cert_error_string(error)),
                            makeRawText(env_, toDer(leaf)),
                            makeText(env_, rules)};
  int32_t counts = X509_V_ERR_UNSPECIFIED;
  napi_value result = call(verdict_, arguments, 6);
  if (result == nullptr || napi_get_value_int32(env_, result, &counts) != napi_ok) return X509_V_ERR_UNSPECIFIED;
  return counts;
}

void Instance::closed() {
  napi_delete_reference(env_, arrays_);
  for (napi_ref callback : {callback_, verdict_}) {
    if (callback != nullptr) napi_delete_reference(env_, callback);
  }
  napi_async_destroy(env_, context_);
  transport_.reset();
  if (hook_ != nullptr) napi_remove_async_cleanup_hook(hook_);
  deleteWhenUnused();
}

// The loop must not be torn down before the transport's handles are closed, or libuv aborts the process.
void Instance::threadEnds(napi_async_cleanup_hook_handle hook, void* self) {
  auto* instance = static_cast<Instance*>(self);
  instance->hook_ = hook;
  if (instance->transport_ != nullptr) instance->transport_->close();
}

// An open transport stays in use without its wrapper until the thread ends.
void Instance::wrapperCollected(napi_env, void* self, void*) {
  auto* instance = static_cast<Instance*>(self);
  instance->wrapped_ = false;
  instance->deleteWhenUnused();
}

void Instance::deleteWhenUnused() {
  if (!wrapped_ && transport_ == nullptr) delete this;
}

}  // namespace baton
