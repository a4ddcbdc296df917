// What the transport knows about one connection or listener. An idle connection costs this record and nothing else here.
#pragma once

#include <cstdint>

#include "system/descriptor.h"
#include "transport/slot-table.h"
#include "transport/socket-stream.h"

namespace baton {

enum class SocketKind : uint8_t { Connection, Listener };

struct SocketRecord : SlotHeader {
  SocketKind kind = SocketKind::Connection;
  uint8_t fullShares = 0;  // receives since the last Pause that filled their share; it stops counting at kFullShares
  SocketStream stream;         // of a connection
  Descriptor listening;        // of a listener
  uint32_t highWatermark = 0;
  uint32_t hardLimit = 0;
  uint32_t receiveLimit = 0;
  uint32_t peekLimit = 0;      // bytes are only looked at, at most so many; 0: they are received
  uint32_t servedInBatch = 0;  // number of the batch that holds its Data event
  uint32_t hints = 0;          // epoll bits not yet looked into
  uint32_t endToken = 0;       // of Op::TellGone or TellLate; 0: nobody wants to know
  int32_t error = 0;           // why it died; reported with Reset
  bool queued : 1;             // stands in the ready list
  bool inEpoll : 1;

  // Connections.
  bool shared : 1;  // the description may have other holders, so closing alone does not take it out of epoll
  bool connecting : 1;
  bool bindFailed : 1;       // there is no connecting from where it was asked for
  bool readable : 1;         // unread bytes, FIN or an error may be waiting
  bool readOn : 1;           // epoll hinted at FIN, RST or urgent data: a short read is not the last
  bool hungUp : 1;           // epoll hinted at FIN or RST
  bool errorHint : 1;        // epoll hinted at an error
  bool readBeforeReset : 1;  // bytes received before the error come first
  bool paused : 1;
  bool ended : 1;          // End reported
  bool dead : 1;           // Reset reported
  bool blocked : 1;        // Blocked reported
  bool shutdownAsked : 1;  // FIN follows the pending bytes
  bool frozen : 1;         // out of the epoll set; another process may have a copy of the descriptor
  bool tellsLate : 1;      // endToken is of TellLate
  bool peekedToEnd : 1;    // all bytes before the peer's FIN were shown

  // Listeners.
  bool contended : 1;  // other threads accept at the same socket
  bool accepting : 1;
  bool resting : 1;      // accept() failed for want of resources
  bool failReported : 1; // AcceptFailed reported, no success since
  bool removed : 1;      // only the rest of the queue is accepted

  SocketRecord()
      : queued(false), inEpoll(false), shared(false), connecting(false), bindFailed(false), readable(false),
        readOn(false), hungUp(false), errorHint(false), readBeforeReset(false), paused(false), ended(false),
        dead(false), blocked(false), shutdownAsked(false), frozen(false), tellsLate(false), peekedToEnd(false),
        contended(false), accepting(false), resting(false), failReported(false), removed(false) {}
};

static_assert(sizeof(SocketRecord) <= 128, "an idle connection must stay small");

}  // namespace baton
