// Functions for sockets outside of a transport.

#include <node_api.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "node/arguments.h"
#include "node/bindings.h"
#include "node/values.h"
#include "system/sockets.h"

namespace baton {
namespace {

// Returns a descriptor that the caller owns, or throws an Error.
napi_value answerSocket(napi_env env, SocketResult opened) {
  if (opened.error == 0) return makeInt(env, opened.fd.release());
  if (opened.reason.empty()) return throwErrno(env, opened.call, opened.error);
  napi_throw(env, makeError(env, opened.error, opened.reason));
  return nullptr;
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

napi_value setSocketOption(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  SocketOption option;
  if (!readInt(env, arguments[0], "fd", 0, fd) || !readSocketOption(env, arguments[1], option)) return nullptr;
  const int error = baton::setSocketOption(fd, option);
  if (error != 0) napi_throw(env, makeError(env, error, failedOption(option, error)));
  return nullptr;
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

napi_value prepareListener(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  int32_t fd;
  if (!readInt(env, arguments[0], "fd", 0, fd)) return nullptr;
  ListenerFacts facts;
  if (const int error = baton::prepareListener(fd, facts)) return throwErrno(env, "prepareListener", error);
  napi_value made;
  if (napi_create_object(env, &made) != napi_ok) return throwErrno(env, "prepareListener", ENOMEM);
  napi_set_named_property(env, made, "address", makeAddress(env, facts.address));
  napi_set_named_property(env, made, "reusePort", makeBool(env, facts.reusePort));
  napi_set_named_property(env, made, "v6Only", makeBool(env, facts.v6Only));
  napi_set_named_property(env, made, "isDatagram", makeBool(env, facts.isDatagram));
  return made;
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

napi_value answerPair(napi_env env, Descriptor ends[2], int error) {
  if (error != 0) return throwErrno(env, "socketpair", error);
  napi_value made;
  napi_create_array_with_length(env, 2, &made);
  for (uint32_t i = 0; i < 2; i++) napi_set_element(env, made, i, makeInt(env, ends[i].release()));
  return made;
}

napi_value socketPair(napi_env env, napi_callback_info) {
  Descriptor ends[2];
  const int error = makeSocketPair(ends);
  return answerPair(env, ends, error);
}

napi_value streamPair(napi_env env, napi_callback_info) {
  int fds[2] = {-1, -1};
  const int result = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
  const int error = result == 0 ? 0 : errno;
  Descriptor ends[2] = {Descriptor(fds[0]), Descriptor(fds[1])};
  return answerPair(env, ends, error);
}

}  // namespace

void bindSockets(napi_env env, napi_value exports) {
  addMethods(env, exports,
             {method("openListenSocket", openListenSocket), method("listen", listen),
              method("setSocketOption", setSocketOption),
              method("boundAddress", boundAddress), method("duplicate", duplicate),
              method("closeDescriptor", closeDescriptor), method("openMeetingSocket", openMeetingSocket),
              method("socketPair", socketPair), method("streamPair", streamPair),
              method("prepareListener", prepareListener)});
}

}  // namespace baton
