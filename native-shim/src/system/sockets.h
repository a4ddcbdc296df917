// Plain socket calls that need no transport. Each answers with a result or an errno, never with an exception.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

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
  int idle = 0;  // seconds; 0 leaves the kernel's default
  int interval = 0;
  int probes = 0;
};

struct ListenOptions {
  bool reusePort = false;
  bool freebind = false;
  bool transparent = false;
  bool v6Only = false;
  Keepalive keepalive;
};

// A descriptor, or the call that failed and its errno.
struct SocketResult {
  Descriptor fd;
  int error = 0;
  const char* call = "";
  // In words of our own, where the errno alone would mislead.
  std::string reason;
};

// A bound socket. The path of a Unix socket is not reached through a link of a stranger (see place.h).
SocketResult openListenSocket(const SocketAddress& address, const ListenOptions& options);
SocketResult duplicate(int fd);
// A socket for startConnect().
SocketResult openConnectSocket(const SocketAddress& remote);
// Where it is to connect from; 0 or errno.
int bindConnecting(int fd, const SocketAddress& local);
// Begins a connect. 0 while it is under way or done, or errno.
int startConnect(int fd, const SocketAddress& remote);
// A bound datagram socket whose messages tell who sent them; of its path the same is true. Its file has this mode from the beginning.
SocketResult openMeetingSocket(const SocketAddress& address, mode_t mode);
// Two ends of a conversation in sequenced packets; 0 or errno.
int makeSocketPair(Descriptor ends[2]);
// 0 or errno: makes an inherited descriptor fit for a transport, if it is a stream socket.
int prepareAdopted(int fd);
bool isLocalSocket(int fd);
// What a listen socket is, whoever has made it.
struct ListenerFacts {
  SocketAddress address;
  bool reusePort = false;
  bool v6Only = false;
};
// 0 or errno: fills `facts`, and makes the socket fit for a transport. EPROTOTYPE for what is no TCP or Unix stream socket, EINVAL for one
// that does not listen.
int prepareListener(int fd, ListenerFacts& facts);
// 0 or errno; EOPNOTSUPP for what is no TCP socket.
int setKeepalive(int fd, const Keepalive& keepalive);
void setNoDelay(int fd);
// The socket's pending error, which this clears; 0 for none.
int takeSocketError(int fd);

}  // namespace baton
