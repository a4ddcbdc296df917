// Socket calls that need no transport. Each returns a result or an errno, and never throws.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "system/descriptor.h"

namespace baton {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool isInternet() const { return family() == AF_INET || family() == AF_INET6; }
};

struct Keepalive {
  bool enabled = false;
  int idle = 0;  // seconds; 0: the kernel's default
  int interval = 0;
  int probes = 0;
};

// An option of setsockopt() with the bytes of its value.
struct SocketOption {
  int level = 0;
  int name = 0;
  std::vector<uint8_t> value;
};

struct ListenOptions {
  bool reusePort = false;
  bool freebind = false;
  bool transparent = false;
  bool v6Only = false;
  bool isDatagram = false;  // UDP
  Keepalive keepalive;
  std::vector<SocketOption> others;  // set last before bind()
};

// A descriptor, or the failed call and its errno.
struct SocketResult {
  Descriptor fd;
  int error = 0;
  const char* call = "";
  // A specific reason, if the errno alone would mislead.
  std::string reason;
};

// Returns a bound socket. Untrusted links in the path of a Unix socket are not followed (see place.h).
SocketResult openListenSocket(const SocketAddress& address, const ListenOptions& options);
// Says which option could not be set.
std::string failedOption(const SocketOption& option, int error);
// Returns 0 or errno.
int setSocketOption(int fd, const SocketOption& option);
SocketResult duplicate(int fd);
// Returns a socket for startConnect().
SocketResult openConnectSocket(const SocketAddress& remote);
// Binds to the address to connect from. Returns 0 or errno.
int bindConnecting(int fd, const SocketAddress& local);
// Begins a connect. Returns 0 if it is in progress or done, or errno.
int startConnect(int fd, const SocketAddress& remote);
// Returns a bound datagram socket whose messages carry the sender's credentials. Resolves the path like openListenSocket(). Its file has
// this mode from the beginning.
SocketResult openMeetingSocket(const SocketAddress& address, mode_t mode);
// Creates two connected SOCK_SEQPACKET sockets. Returns 0 or errno.
int makeSocketPair(Descriptor ends[2]);
// Prepares the descriptor of a stream socket for a transport. Returns 0 or errno.
int prepareAdopted(int fd);
bool isLocalSocket(int fd);
// Properties of a listen socket that another process may have created.
struct ListenerFacts {
  SocketAddress address;
  bool reusePort = false;
  bool v6Only = false;
  bool isDatagram = false;
};
// Fills `facts` and prepares the socket for a transport. Returns 0 or errno: EPROTOTYPE unless it is a TCP, UDP or Unix stream socket,
// EINVAL if a stream socket does not listen.
int prepareListener(int fd, ListenerFacts& facts);
// Returns 0 or errno; EOPNOTSUPP unless it is a TCP socket.
int setKeepalive(int fd, const Keepalive& keepalive);
void setNoDelay(int fd);
// Returns where the peer's connection was directed before the kernel redirected it (iptables REDIRECT, DNAT or TPROXY); empty if the kernel
// does not know.
SocketAddress originalDestination(int fd);
// Returns and clears the socket's pending error; 0 if there is none.
int takeSocketError(int fd);

}  // namespace baton
