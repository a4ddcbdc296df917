// The transport's state of one connection or listener. An idle connection needs no other memory here.
#pragma once

#include <cstdint>

#include "system/descriptor.h"
#include "transport/slot-table.h"
#include "transport/socket-stream.h"

namespace baton {

enum class SocketKind : uint8_t { Connection, Listener };

struct SocketRecord : SlotHeader {
  SocketKind kind = SocketKind::Connection;
  uint8_t fullShares = 0;  // receives since the last Pause that filled their share; counts up to kFullShares
  SocketStream stream;         // of a connection
  Descriptor listening;        // of a listener
  uint32_t highWatermark = 0;
  uint32_t hardLimit = 0;
  uint32_t receiveLimit = 0;
  uint32_t peekLimit = 0;      // maximum bytes to peek at; 0: bytes are received
  uint32_t servedInBatch = 0;  // number of the batch that holds its Data event
  uint32_t hints = 0;          // epoll bits not handled yet
  uint32_t endToken = 0;       // of Op::NotifyGone or NotifyLate; 0: none
  int32_t error = 0;           // why it broke; reported with Reset
  bool queued : 1;             // is in the ready list
  bool inEpoll : 1;

  // Connections.
  bool shared : 1;  // other descriptors may refer to the socket, so closing this one does not remove it from epoll
  bool connecting : 1;
  bool bindFailed : 1;       // binding to the local address failed
  bool readable : 1;         // unread bytes, FIN or an error may be waiting
  bool keepReading : 1;      // epoll hinted at FIN, RST or urgent data: a short read is not the last
  bool hungUp : 1;           // epoll hinted at FIN or RST
  bool errorHint : 1;        // epoll hinted at an error
  bool readBeforeReset : 1;  // bytes received before the error come first
  bool paused : 1;
  bool ended : 1;          // End reported
  bool dead : 1;           // Reset reported
  bool blocked : 1;        // Blocked reported
  bool shutdownAsked : 1;  // FIN follows the pending bytes
  bool frozen : 1;         // not in the epoll set; another process may have a copy of the descriptor
  bool notifiesLate : 1;   // endToken is of NotifyLate
  bool peekedToEnd : 1;    // all bytes before the peer's FIN were shown

  // Listeners.
  uint8_t acceptShare : 7;  // connections per round
  bool accepting : 1;
  bool suspended : 1;     // accept() failed because of a shortage of resources
  bool failReported : 1;  // AcceptFailed reported, no success since
  bool removed : 1;       // only the rest of the backlog is accepted

  SocketRecord()
      : queued(false), inEpoll(false), shared(false), connecting(false), bindFailed(false), readable(false),
        keepReading(false), hungUp(false), errorHint(false), readBeforeReset(false), paused(false), ended(false),
        dead(false), blocked(false), shutdownAsked(false), frozen(false), notifiesLate(false), peekedToEnd(false),
        acceptShare(0), accepting(false), suspended(false), failReported(false), removed(false) {}
};

static_assert(sizeof(SocketRecord) <= 128, "an idle connection must stay small");

}  // namespace baton
