#include "system/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "system/output-file.h"
#include "system/place.h"

// In Linux since 4.15 and 2.6.37; older C libraries do not define them.
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif
#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

namespace baton {
namespace {

// SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, whose headers (linux/netfilter_ipv4.h) conflict with those of the C library.
constexpr int kOriginalDestination = 80;

int setOption(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

int getOption(int fd, int level, int name, int& value) {
  socklen_t length = sizeof value;
  return getsockopt(fd, level, name, &value, &length) == 0 ? 0 : errno;
}

// Options that accepted connections inherit are set once, on the listen socket.
int setListenOptions(int fd, int family, const ListenOptions& options) {
  const bool v6 = family == AF_INET6;
  // On UDP sockets this would let any other process of the user bind the same address.
  int error = options.isDatagram ? 0 : setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (error == 0 && options.reusePort) error = setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (error == 0 && v6) error = setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, options.v6Only ? 1 : 0);
  if (error == 0 && options.freebind) {
    error = v6 ? setOption(fd, IPPROTO_IPV6, IPV6_FREEBIND, 1) : setOption(fd, IPPROTO_IP, IP_FREEBIND, 1);
  }
  if (error == 0 && options.transparent) {
    error = v6 ? setOption(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1) : setOption(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
  }
  if (error == 0) error = setKeepalive(fd, options.keepalive);
  return error;
}

int makeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return errno;
  return 0;
}

SocketResult failed(const char* call, int error, std::string reason = {}) {
  return {Descriptor(), error, call, std::move(reason)};
}

// Returns the path of a Unix socket with a file; empty for any other address.
std::string filePath(const SocketAddress& address) {
  const auto* local = reinterpret_cast<const sockaddr_un*>(address.get());
  const size_t before = offsetof(sockaddr_un, sun_path);
  if (address.family() != AF_UNIX || address.length <= before) return {};
  return {local->sun_path, strnlen(local->sun_path, address.length - before)};
}

SocketResult bindTo(const SocketAddress& address, Descriptor fd) {
  const std::string path = filePath(address);
  Place place;
  if (!path.empty()) {
    if (PathError error = place.find(path.c_str())) return failed("bind", error.code, std::move(error.reason));
  }
  if (bind(fd.get(), address.get(), address.length) != 0) return failed("bind", errno);
  if (path.empty()) return {std::move(fd), 0, "", {}};
  // bind() has resolved the path again, which may have changed.
  struct stat stats;
  const bool exists = fstatat(place.directory(), place.name(), &stats, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && S_ISSOCK(stats.st_mode)) return {std::move(fd), 0, "", {}};
  return failed("bind", EPERM, "the directory of '" + path + "' has been replaced meanwhile");
}

}  // namespace

SocketResult openListenSocket(const SocketAddress& address, const ListenOptions& options) {
  const int type = options.isDatagram ? SOCK_DGRAM : SOCK_STREAM;
  Descriptor fd(socket(address.family(), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket", errno);
  if (address.isInternet()) {
    const int error = setListenOptions(fd.get(), address.family(), options);
    if (error != 0) return failed("setsockopt", error);
  }
  for (const SocketOption& option : options.others) {
    if (const int error = setSocketOption(fd.get(), option)) return failed("setsockopt", error, failedOption(option, error));
  }
  return bindTo(address, std::move(fd));
}

int setSocketOption(int fd, const SocketOption& option) {
  const socklen_t length = static_cast<socklen_t>(option.value.size());
  return setsockopt(fd, option.level, option.name, option.value.data(), length) == 0 ? 0 : errno;
}

std::string failedOption(const SocketOption& option, int error) {
  return "socket option " + std::to_string(option.level) + "/" + std::to_string(option.name) + ": " + strerror(error);
}

SocketResult duplicate(int fd) {
  Descriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return failed("fcntl", errno);
  return {std::move(copy), 0, "", {}};
}

SocketResult openConnectSocket(const SocketAddress& remote) {
  Descriptor fd(socket(remote.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket", errno);
  if (remote.isInternet()) setNoDelay(fd.get());
  return {std::move(fd), 0, "", {}};
}

int bindConnecting(int fd, const SocketAddress& local) {
  // The port is chosen at connect(): one local address can then have as many connections to each peer as there are ports, instead of that
  // many in total.
  if (local.isInternet()) setOption(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  return bind(fd, local.get(), local.length) == 0 ? 0 : errno;
}

int startConnect(int fd, const SocketAddress& remote) {
  return connect(fd, remote.get(), remote.length) == 0 || errno == EINPROGRESS ? 0 : errno;
}

SocketResult openMeetingSocket(const SocketAddress& address, mode_t mode) {
  Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket", errno);
  const int error = setOption(fd.get(), SOL_SOCKET, SO_PASSCRED, 1);
  if (error != 0) return failed("setsockopt", error);
  const std::string path = filePath(address);
  // bind() gives the file the mode of the socket's own inode, less the umask, so no other user can send before the mode is set. The umask
  // cannot be used for this, because all threads share it.
  if (!path.empty() && fchmod(fd.get(), mode) != 0) return failed("fchmod", errno);
  SocketResult bound = bindTo(address, std::move(fd));
  if (path.empty() || !bound.fd) return bound;
  // Restores what the umask has removed.
  if (PathError error = setSocketMode(path.c_str(), mode)) return failed("chmod", error.code, std::move(error.reason));
  return bound;
}

int makeSocketPair(Descriptor ends[2]) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) return errno;
  ends[0] = Descriptor(fds[0]);
  ends[1] = Descriptor(fds[1]);
  return 0;
}

int prepareAdopted(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0) return errno;
  return type == SOCK_STREAM ? makeNonBlocking(fd) : EPROTOTYPE;
}

int prepareListener(int fd, ListenerFacts& facts) {
  int type = 0;
  int protocol = 0;
  int listens = 0;
  int error = getOption(fd, SOL_SOCKET, SO_TYPE, type);
  if (error == 0) error = getOption(fd, SOL_SOCKET, SO_PROTOCOL, protocol);
  if (error == 0) error = getOption(fd, SOL_SOCKET, SO_ACCEPTCONN, listens);
  if (error != 0) return error;
  facts.isDatagram = type == SOCK_DGRAM;
  if (type != SOCK_STREAM && !facts.isDatagram) return EPROTOTYPE;
  if (listens == 0 && !facts.isDatagram) return EINVAL;
  SocketAddress& address = facts.address;
  address.length = sizeof address.storage;
  if (getsockname(fd, address.get(), &address.length) != 0) return errno;
  const int expected = facts.isDatagram ? IPPROTO_UDP : IPPROTO_TCP;
  if (address.isInternet() ? protocol != expected : facts.isDatagram || address.family() != AF_UNIX) return EPROTOTYPE;
  int reusePort = 0;
  int v6Only = 0;
  if (address.isInternet()) error = getOption(fd, SOL_SOCKET, SO_REUSEPORT, reusePort);
  if (error == 0 && address.family() == AF_INET6) error = getOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6Only);
  if (error != 0) return error;
  facts.reusePort = reusePort != 0;
  facts.v6Only = v6Only != 0;
  // A thread must never block in accept().
  return makeNonBlocking(fd);
}

bool isLocalSocket(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

int setKeepalive(int fd, const Keepalive& keepalive) {
  if (!keepalive.enabled) return 0;
  int error = setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  if (error == 0 && keepalive.idle > 0) error = setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive.idle);
  if (error == 0 && keepalive.interval > 0) error = setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive.interval);
  if (error == 0 && keepalive.probes > 0) error = setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive.probes);
  return error;
}

void setNoDelay(int fd) { setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

SocketAddress originalDestination(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getsockname(fd, address.get(), &address.length) != 0 || !address.isInternet()) return {};
  const auto* local = reinterpret_cast<const sockaddr_in6*>(address.get());
  // Connection tracking knows a mapped address as the IPv4 address that it is.
  const bool v6 = address.family() == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&local->sin6_addr);
  SocketAddress original;
  original.length = sizeof original.storage;
  if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, kOriginalDestination, original.get(), &original.length) == 0) {
    return original;
  }
  // TPROXY leaves the destination as it is: the socket has that address.
  int transparent = 0;
  socklen_t length = sizeof transparent;
  const int failure = address.family() == AF_INET6
                          ? getsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &transparent, &length)
                          : getsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &transparent, &length);
  return failure == 0 && transparent != 0 ? address : SocketAddress();
}

int takeSocketError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace baton
