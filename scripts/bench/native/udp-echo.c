// Sends each datagram back to its sender, in batches.
//
//   udp-echo PORT

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { kBatch = 64, kBytes = 2048 };

int main(int count, char** words) {
  if (count != 2) return 2;
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  const int room = 1 << 22;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, (struct sockaddr*)&at, sizeof at) != 0) return 1;
  static char bytes[kBatch][kBytes];
  static struct mmsghdr messages[kBatch];
  static struct iovec ranges[kBatch];
  static struct sockaddr_in peers[kBatch];
  for (;;) {
    for (int i = 0; i < kBatch; i++) {
      ranges[i] = (struct iovec){bytes[i], kBytes};
      messages[i].msg_hdr = (struct msghdr){
          .msg_name = &peers[i], .msg_namelen = sizeof peers[i], .msg_iov = &ranges[i], .msg_iovlen = 1};
    }
    const int got = recvmmsg(fd, messages, kBatch, MSG_WAITFORONE, NULL);
    for (int i = 0; i < got; i++) ranges[i].iov_len = messages[i].msg_len;
    if (got > 0) sendmmsg(fd, messages, (unsigned)got, 0);
  }
}
