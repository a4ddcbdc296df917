// The addresses of a datagram as words of a record, and as the kernel has them.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "system/sockets.h"

namespace baton {

// [port << 16 | family, four words of address bytes, scope or interface]. family: 0 (none), 4 or 6. IPv4 is in the first word of bytes.
constexpr uint32_t kAddressWords = 6;

void writePeer(const sockaddr_storage& peer, int32_t* words);
// Writes the address that the datagram was sent to, if the kernel reports it.
void writeLocal(msghdr& message, int32_t* words);
// Returns false for family 0.
bool readPeer(const int32_t* words, SocketAddress& to);

// Room for one control message with an address to send from.
struct SourceControl {
  alignas(cmsghdr) unsigned char bytes[64];
};
// Makes the kernel send from the address in `words`, which may be none.
void setSource(const int32_t* words, SourceControl& control, msghdr& message);

}  // namespace baton
