// The methods of a transport, and createTransport().

#include <node_api.h>

#include <cerrno>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/instance.h"
#include "node/tls-values.h"
#include "node/values.h"
#include "system/sockets.h"
#include "tls/registry.h"

namespace baton {
namespace {

// Returns the open transport that a method is called on; nullptr after throwing.
Transport* openTransport(const Arguments& arguments) {
  Instance* instance = Instance::from(arguments.env(), arguments.self());
  if (instance == nullptr) return nullptr;
  if (instance->transport() == nullptr) throwErrno(arguments.env(), "the transport is closed", EBADF);
  return instance->transport();
}

// Returns an ID, or throws an Error for a negative errno.
napi_value answerId(napi_env env, const char* call, Id id) {
  return id < 0 ? throwErrno(env, call, -id) : makeInt(env, id);
}

napi_value addListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  bool contended;
  int32_t maxAccepted;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "fd", 0, fd) ||
      !readBool(env, arguments[1], "contended", contended) ||
      !readInt(env, arguments[2], "maxAccepted", 0, maxAccepted)) {
    return nullptr;
  }
  return answerId(env, "addListener", transport->addListener(fd, contended, maxAccepted));
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

// Calls a method on a connection and returns its boolean result.
napi_value callOn(napi_env env, napi_callback_info info, bool (Transport::*call)(Id)) {
  const Arguments arguments(env, info);
  int32_t id;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  return makeBool(env, (transport->*call)(id));
}

napi_value freeze(napi_env env, napi_callback_info info) { return callOn(env, info, &Transport::freeze); }

napi_value thaw(napi_env env, napi_callback_info info) { return callOn(env, info, &Transport::thaw); }

napi_value releaseFrozen(napi_env env, napi_callback_info info) {
  return callOn(env, info, &Transport::releaseFrozen);
}

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
  napi_value made;
  if (pending == nullptr || napi_create_object(env, &made) != napi_ok) return throwErrno(env, "copyFrozen", ENOMEM);
  napi_set_named_property(env, made, "fd", makeInt(env, copy.fd.release()));
  napi_set_named_property(env, made, "pending", pending);
  napi_set_named_property(env, made, "ended", makeBool(env, frozen.ended));
  napi_set_named_property(env, made, "finAsked", makeBool(env, frozen.finAsked));
  return made;
}

napi_value startTls(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  int32_t number;
  TlsClientOptions options;
  Transport* transport = openTransport(arguments);
  if (transport == nullptr || !readInt(env, arguments[0], "id", 0, id) ||
      !readInt(env, arguments[1], "context", 1, number) ||
      !readText(env, arguments[2], "serverName", options.serverName) ||
      !readText(env, arguments[3], "alpn", options.alpn) ||
      !readText(env, arguments[4], "sessionGroup", options.sessionGroup) ||
      (!isAbsent(env, arguments[5]) && !readBool(env, arguments[5], "replacesAlpn", options.replacesAlpn))) {
    return nullptr;
  }
  std::shared_ptr<TlsContext> context = TlsRegistry::shared().find(number);
  if (context == nullptr) return makeBool(env, false);
  const int error = transport->startTls(id, std::move(context), std::move(options));
  return error == 0 ? makeBool(env, true) : throwErrno(env, "startTls", error);
}

// Calls `make` with the TLS session of a connection. Returns undefined if there is none.
template <typename Make>
napi_value ofTls(napi_env env, napi_callback_info info, Make make) {
  const Arguments arguments(env, info);
  int32_t id;
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  TlsSession* session = instance->transport() == nullptr ? nullptr : instance->transport()->tls(id);
  return session == nullptr ? nullptr : make(env, *session);
}

napi_value tlsState(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  void* numbers;
  size_t length;
  if (!readArray(env, arguments[1], "numbers", napi_int32_array, false, numbers, length)) return nullptr;
  if (length < kStateNumbers) return throwType(env, "numbers is too short");
  return ofTls(env, info, [numbers](napi_env to, TlsSession& session) {
    return makeTlsState(to, session, static_cast<int32_t*>(numbers));
  });
}

napi_value tlsNames(napi_env env, napi_callback_info info) { return ofTls(env, info, makeTlsNames); }

napi_value peerCertificates(napi_env env, napi_callback_info info) { return ofTls(env, info, makePeerCertificates); }

napi_value peerIssuer(napi_env env, napi_callback_info info) { return ofTls(env, info, makePeerIssuer); }

napi_value ownCertificate(napi_env env, napi_callback_info info) { return ofTls(env, info, makeOwnCertificate); }

napi_value tlsFailure(napi_env env, napi_callback_info info) {
  return ofTls(env, info, [](napi_env to, TlsSession& session) { return makeText(to, session.failure()); });
}

napi_value takeTlsKeys(napi_env env, napi_callback_info info) {
  return ofTls(env, info, [](napi_env to, TlsSession& session) { return makeText(to, session.takeKeys()); });
}

napi_value tlsStaple(napi_env env, napi_callback_info info) {
  return ofTls(env, info, [](napi_env to, TlsSession& session) {
    return makeInt(to, static_cast<int32_t>(session.staple()));
  });
}

// After close() these return empty results instead of throwing, because they are called during teardown.

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

napi_value originalDestination(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t id;
  Instance* instance = Instance::from(env, arguments.self());
  if (instance == nullptr || !readInt(env, arguments[0], "id", 0, id)) return nullptr;
  const int fd = instance->transport() == nullptr ? -1 : instance->transport()->descriptor(id);
  return makeAddress(env, fd < 0 ? SocketAddress() : baton::originalDestination(fd));
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
  return makeBool(env, instance->transport() != nullptr && instance->transport()->isStarved());
}

napi_value close(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  Instance* instance = Instance::from(env, arguments.self());
  if (instance != nullptr && instance->transport() != nullptr) instance->transport()->close();
  return nullptr;
}

napi_value createTransport(napi_env env, napi_callback_info info) {
  static const napi_property_descriptor methods[] = {
      method("addListener", addListener),       method("setAccepting", setAccepting),
      method("removeListener", removeListener), method("connect", connect),
      method("adopt", adopt),                   method("freeze", freeze),
      method("copyFrozen", copyFrozen),         method("thaw", thaw),
      method("releaseFrozen", releaseFrozen),   method("flush", flush),
      method("localAddress", localAddress),     method("pendingBytes", pendingBytes),
      method("counts", counts),                 method("keepAlive", keepAlive),
      method("isStarved", isStarved),           method("close", close),
      method("startTls", startTls),             method("tlsState", tlsState),
      method("tlsNames", tlsNames),
      method("peerCertificates", peerCertificates), method("peerIssuer", peerIssuer),
      method("ownCertificate", ownCertificate), method("tlsFailure", tlsFailure),
      method("tlsStaple", tlsStaple),       method("takeTlsKeys", takeTlsKeys),
      method("originalDestination", originalDestination)};
  const Arguments arguments(env, info);
  napi_valuetype type = napi_undefined;
  if (napi_typeof(env, arguments[0], &type) != napi_ok || type != napi_object) {
    return throwType(env, "options must be an object");
  }
  return Instance::create(env, arguments[0], methods, sizeof methods / sizeof methods[0]);
}

}  // namespace

void bindTransports(napi_env env, napi_value exports) {
  addMethods(env, exports, {method("createTransport", createTransport)});
}

}  // namespace baton
