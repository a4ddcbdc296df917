#include "datagrams/datagram-address.h"

#include <netinet/in.h>

#include <cstring>

namespace baton {
namespace {

constexpr uint32_t kIp4 = 4;
constexpr uint32_t kIp6 = 6;

uint32_t familyOf(const int32_t* words) { return static_cast<uint32_t>(words[0]) & 0xffff; }
uint32_t portOf(const int32_t* words) { return static_cast<uint32_t>(words[0]) >> 16; }

void write(int32_t* words, uint32_t family, uint32_t port, const void* bytes, size_t length, uint32_t scope) {
  words[0] = static_cast<int32_t>(port << 16 | family);
  memset(words + 1, 0, 16);
  memcpy(words + 1, bytes, length);
  words[5] = static_cast<int32_t>(scope);
}

static_assert(CMSG_SPACE(sizeof(in6_pktinfo)) <= sizeof(SourceControl), "room for either control message");

}  // namespace

void writePeer(const sockaddr_storage& peer, int32_t* words) {
  if (peer.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(peer);
    write(words, kIp4, ntohs(ip4.sin_port), &ip4.sin_addr, 4, 0);
  } else if (peer.ss_family == AF_INET6) {
    const auto& ip6 = reinterpret_cast<const sockaddr_in6&>(peer);
    write(words, kIp6, ntohs(ip6.sin6_port), &ip6.sin6_addr, 16, ip6.sin6_scope_id);
  } else {
    memset(words, 0, kAddressWords * sizeof *words);
  }
}

void writeLocal(msghdr& message, int32_t* words) {
  memset(words, 0, kAddressWords * sizeof *words);
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      memcpy(&info, CMSG_DATA(each), sizeof info);
      write(words, kIp4, 0, &info.ipi_addr, 4, static_cast<uint32_t>(info.ipi_ifindex));
    } else if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      memcpy(&info, CMSG_DATA(each), sizeof info);
      return write(words, kIp6, 0, &info.ipi6_addr, 16, info.ipi6_ifindex);
    }
  }
}

bool readPeer(const int32_t* words, SocketAddress& to) {
  const uint32_t family = familyOf(words);
  if (family == kIp4) {
    auto* ip4 = reinterpret_cast<sockaddr_in*>(&to.storage);
    *ip4 = {};
    ip4->sin_family = AF_INET;
    ip4->sin_port = htons(static_cast<uint16_t>(portOf(words)));
    memcpy(&ip4->sin_addr, words + 1, 4);
    to.length = sizeof *ip4;
    return true;
  }
  if (family != kIp6) return false;
  auto* ip6 = reinterpret_cast<sockaddr_in6*>(&to.storage);
  *ip6 = {};
  ip6->sin6_family = AF_INET6;
  ip6->sin6_port = htons(static_cast<uint16_t>(portOf(words)));
  memcpy(&ip6->sin6_addr, words + 1, 16);
  ip6->sin6_scope_id = static_cast<uint32_t>(words[5]);
  to.length = sizeof *ip6;
  return true;
}

void setSource(const int32_t* words, SourceControl& control, msghdr& message) {
  const uint32_t family = familyOf(words);
  if (family == 0) return;
  message.msg_control = control.bytes;
  message.msg_controllen = family == kIp4 ? CMSG_SPACE(sizeof(in_pktinfo)) : CMSG_SPACE(sizeof(in6_pktinfo));
  memset(control.bytes, 0, sizeof control.bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  // The interface is left to the routes, except for link-local addresses, which exist once for each interface.
  if (family == kIp4) {
    in_pktinfo info{};
    memcpy(&info.ipi_spec_dst, words + 1, 4);
    header->cmsg_level = IPPROTO_IP;
    header->cmsg_type = IP_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(header), &info, sizeof info);
  } else {
    in6_pktinfo info{};
    memcpy(&info.ipi6_addr, words + 1, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) info.ipi6_ifindex = static_cast<uint32_t>(words[5]);
    header->cmsg_level = IPPROTO_IPV6;
    header->cmsg_type = IPV6_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(header), &info, sizeof info);
  }
}

}  // namespace baton
