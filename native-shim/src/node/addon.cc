// The addon's face to JavaScript: src/io/shim.ts in functions.

#include <node_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "node/arguments.h"
#include "node/instance.h"
#include "node/message-socket.h"
#include "node/output-files.h"
#include "system/process.h"
#include "system/sockets.h"

namespace baton {
namespace {

// The open transport that a method is called on; nullptr after throwing.
Transport* openTransport(const Arguments& arguments) {
  Instance* instance = Instance::from(arguments.env(), arguments.self());
  if (instance == nullptr) return nullptr;
  if (instance->transport() == nullptr) throwErrno(arguments.env(), "the transport is closed", EBADF);
  return instance->transport();
}

// An id, or a thrown Error for a negative errno.
napi_value answerId(napi_env env, const char* call, Id id) {
  return id < 0 ? throwErrno(env, call, -id) : makeInt(env, id);
}

// A descriptor that belongs to the caller, or a thrown Error.
napi_value answerSocket(napi_env env, SocketResult opened) {
  if (opened.error == 0) return makeInt(env, opened.fd.release());
  if (opened.reason.empty()) return throwErrno(env, opened.call, opened.error);
  napi_throw(env, makeError(env, opened.error, opened.reason));
  return nullptr;
}

// ---- methods of a transport

napi_value addListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  bool contended;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "fd", 0, fd) ||
      !readBool(env, arguments[1], "contended", contended)) {
    return nullptr;
  }
  return answerId(env, "addListener", transport->addListener(fd, contended));
}

napi_value setAccepting(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t listener;
  bool accepting;
  Transport* transport = openTransport(arguments);
  if (transport != nullptr && readInt(env, arguments[0], "listener", 0, listener) &&
      readBool(env, arguments[1], "accepting", accepting)) {
    transport->setAccepting(listener, accepting);
  }
  return nullptr;
}

napi_value removeListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t listener;
  bool acceptRest;
  Transport* transport = openTransport(arguments);
  if (transport != nullptr && readInt(env, arguments[0], "listener", 0, listener) &&
      readBool(env, arguments[1], "acceptRest", acceptRest)) {
    transport->removeListener(listener, acceptRest);
  }
  return nullptr;
}

napi_value connect(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress remote;
  SocketAddress local;
  int32_t high;
  int32_t hard;
  int32_t receive;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readAddress(env, arguments[0], "remote", remote) ||
      !readInt(env, arguments[2], "highWatermark", 0, high) || !readInt(env, arguments[3], "hardLimit", 0, hard) ||
      !readInt(env, arguments[4], "receiveLimit", 0, receive)) {
    return nullptr;
  }
  const bool hasLocal = !isAbsent(env, arguments[1]);
  if (hasLocal && !readAddress(env, arguments[1], "local", local)) return nullptr;
  const Transport::Limits limits{static_cast<uint32_t>(high), static_cast<uint32_t>(hard),
                                 static_cast<uint32_t>(receive)};
  return answerId(env, "connect", transport->connect(remote, hasLocal ? &local : nullptr, limits));
}

bool readAdoption(napi_env env, napi_value value, Transport::Adoption& to) {
  int32_t high;
  int32_t hard;
  int32_t receive;
  void* pending;
  if (!readInt(env, property(env, value, "highWatermark"), "highWatermark", 0, high) ||
      !readInt(env, property(env, value, "hardLimit"), "hardLimit", 0, hard) ||
      !readInt(env, property(env, value, "receiveLimit"), "receiveLimit", 0, receive) ||
      !readArray(env, property(env, value, "pending"), "pending", napi_uint8_array, false, pending, to.pendingBytes) ||
      !readBool(env, property(env, value, "ended"), "ended", to.ended) ||
      !readBool(env, property(env, value, "finAsked"), "finAsked", to.finAsked) ||
      !readBool(env, property(env, value, "paused"), "paused", to.paused) ||
      !readBool(env, property(env, value, "frozen"), "frozen", to.frozen)) {
    return false;
  }
  to.limits = {static_cast<uint32_t>(high), static_cast<uint32_t>(hard), static_cast<uint32_t>(receive)};
  to.pending = static_cast<const uint8_t*>(pending);
  return true;
}

napi_value adopt(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  Transport::Adoption adoption{};
  adoption.limits = transport->acceptedLimits();
  if (!isAbsent(env, arguments[1]) && !readAdoption(env, arguments[1], adoption)) return nullptr;
  return answerId(env, "adopt", transport->adopt(fd, adoption));
}

// A call on a connection that says whether there was something to do.
napi_value tryOn(napi_env env, napi_callback_info info, bool (Transport::*call)(Id)) {
  const Arguments arguments(env, info);
  int32_t id;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  napi_value done;
  napi_get_boolean(env, (transport->*call)(id), &done);
  return done;
}

napi_value freeze(napi_env env, napi_callback_info info) { return tryOn(env, info, &Transport::freeze); }

napi_value thaw(napi_env env, napi_callback_info info) { return tryOn(env, info, &Transport::thaw); }

napi_value letGo(napi_env env, napi_callback_info info) { return tryOn(env, info, &Transport::letGo); }

napi_value copyFrozen(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  Transport::Frozen frozen{};
  if (!transport->frozen(id, frozen)) return throwErrno(env, "copyFrozen", ENOENT);
  SocketResult copy = baton::duplicate(frozen.fd);
  if (copy.error != 0) return throwErrno(env, copy.call, copy.error);
  napi_value pending = makeBytes(env, frozen.pending->data(), frozen.pending->size());
  napi_value ended;
  napi_value finAsked;
  napi_value made;
  if (pending == nullptr || napi_get_boolean(env, frozen.ended, &ended) != napi_ok ||
      napi_get_boolean(env, frozen.finAsked, &finAsked) != napi_ok || napi_create_object(env, &made) != napi_ok) {
    return throwErrno(env, "copyFrozen", ENOMEM);
  }
  napi_set_named_property(env, made, "fd", makeInt(env, copy.fd.release()));
  napi_set_named_property(env, made, "pending", pending);
  napi_set_named_property(env, made, "ended", ended);
  napi_set_named_property(env, made, "finAsked", finAsked);
  return made;
}

// After close() there is nothing to carry out, to count or to name: these answer so instead of throwing, because
// tearing down is when they are called last.

napi_value flush(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr || instance->transport() == nullptr) return nullptr;
  const char* mistake = instance->transport()->flush();
  return mistake == nullptr ? nullptr : throwType(env, mistake);
}

napi_value localAddress(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  SocketAddress address;
  const int fd = instance->transport() == nullptr ? -1 : instance->transport()->descriptor(id);
  address.length = sizeof address.storage;
  if (fd < 0 || getsockname(fd, address.get(), &address.length) != 0) address.length = 0;
  return makeAddress(env, address);
}

napi_value pendingBytes(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  Transport* transport = instance->transport();
  return makeInt(env, transport == nullptr ? 0 : static_cast<int32_t>(transport->pendingBytes(id)));
}

napi_value keepAlive(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  Keepalive keepalive;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "id", 0, id) ||
      !readKeepalive(env, arguments[1], keepalive)) {
    return nullptr;
  }
  const int fd = transport->descriptor(id);
  const int error = fd < 0 ? 0 : setKeepalive(fd, keepalive);
  return error == 0 || error == EOPNOTSUPP ? nullptr : throwErrno(env, "setsockopt", error);
}

napi_value counts(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr) return nullptr;
  Transport::Counts now{0, 0, 0};
  if (instance->transport() != nullptr) now = instance->transport()->counts();
  napi_value made;
  napi_create_object(env, &made);
  napi_set_named_property(env, made, "connections", makeInt(env, static_cast<int32_t>(now.connections)));
  napi_set_named_property(env, made, "listeners", makeInt(env, static_cast<int32_t>(now.listeners)));
  napi_set_named_property(env, made, "closing", makeInt(env, static_cast<int32_t>(now.closing)));
  return made;
}

napi_value isStarved(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr) return nullptr;
  napi_value answer;
  napi_get_boolean(env, instance->transport() != nullptr && instance->transport()->isStarved(), &answer);
  return answer;
}

napi_value close(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  Instance* instance = Instance::from(env, arguments.self());
  if (instance != nullptr && instance->transport() != nullptr) instance->transport()->close();
  return nullptr;
}

napi_property_descriptor method(const char* name, napi_callback call) {
  return {name, nullptr, call, nullptr, nullptr, nullptr, napi_enumerable, nullptr};
}

// ---- functions of the module

napi_value createTransport(napi_env env, napi_callback_info info) {
  static const napi_property_descriptor methods[] = {
      method("addListener", addListener),       method("setAccepting", setAccepting),
      method("removeListener", removeListener), method("connect", connect),
      method("adopt", adopt),                   method("freeze", freeze),
      method("copyFrozen", copyFrozen),         method("thaw", thaw),
      method("letGo", letGo),                   method("flush", flush),
      method("localAddress", localAddress),     method("pendingBytes", pendingBytes),
      method("counts", counts),                 method("keepAlive", keepAlive),
      method("isStarved", isStarved),           method("close", close)};
  const Arguments arguments(env, info);
  napi_valuetype type = napi_undefined;
  if (napi_typeof(env, arguments[0], &type) != napi_ok || type != napi_object) {
    return throwType(env, "options must be an object");
  }
  return Instance::create(env, arguments[0], methods, sizeof methods / sizeof methods[0]);
}

napi_value openListenSocket(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress address;
  ListenOptions options;
  if (!readAddress(env, arguments[0], "address", address) || !readListenOptions(env, arguments[1], options)) {
    return nullptr;
  }
  SocketResult opened = baton::openListenSocket(address, options);
  return answerSocket(env, std::move(opened));
}

napi_value listen(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  int32_t backlog;
  if (!readInt(env, arguments[0], "fd", 0, fd) || !readInt(env, arguments[1], "backlog", 0, backlog)) return nullptr;
  return ::listen(fd, backlog) == 0 ? nullptr : throwErrno(env, "listen", errno);
}

napi_value boundAddress(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getsockname(fd, address.get(), &address.length) != 0) return throwErrno(env, "getsockname", errno);
  return makeAddress(env, address);
}

napi_value duplicate(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  SocketResult copy = baton::duplicate(fd);
  return copy.error != 0 ? throwErrno(env, copy.call, copy.error) : makeInt(env, copy.fd.release());
}

napi_value closeDescriptor(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  return ::close(fd) == 0 || errno == EINTR ? nullptr : throwErrno(env, "close", errno);
}

// ---- message sockets

// The descriptors of an array, their number in `count`.
bool readDescriptors(napi_env env, napi_value value, int* fds, size_t& count) {
  uint32_t length = 0;
  if (napi_get_array_length(env, value, &length) != napi_ok || length > MessageSocket::kMaxDescriptors) {
    throwType(env, "fds must be an array of at most 64 descriptors");
    return false;
  }
  for (uint32_t i = 0; i < length; i++) {
    napi_value element;
    int32_t fd;
    if (napi_get_element(env, value, i, &element) != napi_ok || !readInt(env, element, "fd", 0, fd)) return false;
    fds[i] = fd;
  }
  count = length;
  return true;
}

// send(bytes, fds), or sendTo(address, bytes, fds) with `to`.
napi_value sendMessage(napi_env env, const Arguments& arguments, const SocketAddress* to, size_t first) {
  MessageSocket* socket = MessageSocket::from(env, arguments.self());
  void* bytes;
  size_t length;
  int fds[MessageSocket::kMaxDescriptors];
  size_t count;
  if (socket == nullptr ||
      !readArray(env, arguments[first], "bytes", napi_uint8_array, false, bytes, length) ||
      !readDescriptors(env, arguments[first + 1], fds, count)) {
    return nullptr;
  }
  const int error = socket->send(to == nullptr ? nullptr : to->get(), to == nullptr ? 0 : to->length, bytes, length,
                                 fds, count);
  if (error != 0 && error != EAGAIN) return throwErrno(env, "sendmsg", error);
  napi_value sent;
  napi_get_boolean(env, error == 0, &sent);
  return sent;
}

napi_value send(napi_env env, napi_callback_info info) {
  return sendMessage(env, Arguments(env, info), nullptr, 0);
}

napi_value sendTo(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress address;
  return readAddress(env, arguments[0], "address", address) ? sendMessage(env, arguments, &address, 1) : nullptr;
}

napi_value closeMessages(napi_env env, napi_callback_info info) {
  MessageSocket* socket = MessageSocket::from(env, Arguments(env, info).self());
  if (socket != nullptr) socket->close();
  return nullptr;
}

napi_value watchMessages(napi_env env, napi_callback_info info) {
  static const napi_property_descriptor methods[] = {method("send", send), method("sendTo", sendTo),
                                                     method("close", closeMessages)};
  const Arguments arguments(env, info);
  int32_t fd;
  napi_valuetype type = napi_undefined;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  if (napi_typeof(env, arguments[1], &type) != napi_ok || type != napi_object) {
    return throwType(env, "events must be an object");
  }
  bool isConversation = false;
  napi_get_value_bool(env, arguments[2], &isConversation);
  return MessageSocket::create(env, fd, arguments[1], isConversation, methods, sizeof methods / sizeof methods[0]);
}

napi_value openMeetingSocket(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  SocketAddress address;
  int32_t mode = 0600;
  if (!readAddress(env, arguments[0], "address", address)) return nullptr;
  napi_valuetype type = napi_undefined;
  napi_typeof(env, arguments[1], &type);
  if (type != napi_undefined && !readInt(env, arguments[1], "mode", 0, mode)) return nullptr;
  SocketResult opened = baton::openMeetingSocket(address, static_cast<mode_t>(mode & 0777));
  return answerSocket(env, std::move(opened));
}

napi_value socketPair(napi_env env, napi_callback_info) {
  Descriptor ends[2];
  const int error = makeSocketPair(ends);
  if (error != 0) return throwErrno(env, "socketpair", error);
  napi_value made;
  napi_create_array_with_length(env, 2, &made);
  for (uint32_t i = 0; i < 2; i++) napi_set_element(env, made, i, makeInt(env, ends[i].release()));
  return made;
}

// ---- the process

napi_value endWithParent(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t signal;
  if (!readInt(env, arguments[0], "signal", 0, signal)) return nullptr;
  const int error = baton::endWithParent(signal);
  return error == 0 ? nullptr : throwErrno(env, "prctl", error);
}

napi_value reap(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t pid;
  if (!readInt(env, arguments[0], "pid", 1, pid)) return nullptr;
  const int ended = baton::reap(pid);
  if (ended < 0 && ended != -ECHILD) return throwErrno(env, "waitpid", -ended);
  napi_value gone;
  napi_get_boolean(env, ended == pid, &gone);
  return gone;
}

napi_value collectGarbage(napi_env env, napi_callback_info) {
  baton::collectGarbage(env);
  return nullptr;
}

napi_value trimMemory(napi_env, napi_callback_info) {
  baton::trimMemory();
  return nullptr;
}

napi_value releasePages(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  void* bytes;
  size_t size;
  int32_t offset;
  int32_t length;
  if (!readArray(env, arguments[0], "memory", napi_uint8_array, true, bytes, size) ||
      !readInt(env, arguments[1], "offset", 0, offset) || !readInt(env, arguments[2], "length", 0, length)) {
    return nullptr;
  }
  if (static_cast<size_t>(offset) + static_cast<size_t>(length) > size) {
    napi_throw_range_error(env, nullptr, "the pages are no part of the memory");
    return nullptr;
  }
  const int error = baton::releasePages(static_cast<uint8_t*>(bytes) + offset, static_cast<size_t>(length));
  return error == 0 ? nullptr : throwErrno(env, "madvise", error);
}

napi_value threadId(napi_env env, napi_callback_info) {
  return makeInt(env, static_cast<int32_t>(syscall(SYS_gettid)));
}

napi_value allowedProcessors(napi_env env, napi_callback_info) {
  const int count = baton::allowedProcessors();
  return count < 0 ? throwErrno(env, "sched_getaffinity", -count) : makeInt(env, count);
}

napi_value enableCoreDump(napi_env env, napi_callback_info) {
  const int error = baton::enableCoreDump();
  return error == 0 ? nullptr : throwErrno(env, "prctl", error);
}

napi_value initialize(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      method("createTransport", createTransport), method("openListenSocket", openListenSocket),
      method("listen", listen),                   method("boundAddress", boundAddress),
      method("duplicate", duplicate),             method("closeDescriptor", closeDescriptor),
      method("threadId", threadId),               method("allowedProcessors", allowedProcessors),
      method("enableCoreDump", enableCoreDump),   method("openMeetingSocket", openMeetingSocket),
      method("socketPair", socketPair),           method("watchMessages", watchMessages),
      method("endWithParent", endWithParent),     method("reap", reap),
      method("trimMemory", trimMemory),           method("collectGarbage", collectGarbage),
      method("openOutput", openOutputFile),       method("openOutputLater", openOutputFileLater),
      method("replaceFile", replaceFileContent),  method("checkOutput", checkOutputFile),
      method("setSocketMode", setSocketFileMode),
      method("releasePages", releasePages)};
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}

}  // namespace
}  // namespace baton

NAPI_MODULE(shim, baton::initialize)
