// The UDP sockets of a thread: listen sockets, and sockets that are connected to one peer. Datagrams are received and sent in batches, and
// never queued: one that the kernel does not accept is lost, as anywhere on its way.
#pragma once

#include <uv.h>

#include <array>
#include <cstdint>
#include <vector>

#include "system/descriptor-limit.h"
#include "system/epoll-set.h"
#include "system/sockets.h"
#include "transport/slot-table.h"

namespace baton {

// JavaScript's arrays; src/io/datagrams/datagram-record.ts documents the records.
struct DatagramArrays {
  uint8_t* memory = nullptr;
  uint32_t memoryBytes = 0;
  uint32_t receiveBytes = 0;  // the receive window, at the start of the memory
  int32_t* events = nullptr;
  uint32_t maxEvents = 0;
  int32_t* sends = nullptr;
  uint32_t maxSends = 0;
};

enum class DatagramEvent : int32_t { Datagram = 1, Dropped, Error };

class DatagramHandler {
 public:
  // Handles the first `count` events. The window and the events are reused afterwards.
  virtual void handle(uint32_t count) = 0;
  // The sockets are closed, and so are the handles of the loop.
  virtual void closed() = 0;

 protected:
  ~DatagramHandler() = default;
};

class DatagramSockets {
 public:
  // `reserve`: see DescriptorLimit.
  DatagramSockets(const DatagramArrays& arrays, uint32_t reserve, DatagramHandler& handler)
      : arrays_(arrays), limit_(reserve), handler_(handler) {}

  // Returns 0 or errno.
  int open(uv_loop_t* loop);
  bool isOpen() const { return open_; }
  // Closes everything; DatagramHandler::closed() follows.
  void close();

  // These return an ID or a negative errno. Datagrams of more than `maxBytes` are dropped and reported.
  // Adds a copy of a bound socket, which receives after setReceiving().
  Id addListener(int fd, uint32_t maxBytes);
  // Opens a socket, applies `options`, binds it if `local` is given, and connects it.
  Id connect(const SocketAddress& remote, const SocketAddress* local, const std::vector<SocketOption>& options,
             uint32_t maxBytes);

  // Returns 0 or errno.
  int setReceiving(Id id, bool receives);
  void remove(Id id);
  // -1 for a stale ID.
  int descriptor(Id id);

  // Sends the first `count` records, and writes 0 or errno to each. Returns false if a record names bytes outside of the memory, which is
  // then not sent.
  bool flush(uint32_t count);

 private:
  struct Socket : SlotHeader {
    Descriptor fd;
    uint32_t maxBytes = 0;
    uint32_t overflowed = 0;  // SO_RXQ_OVFL, as of the last datagram
    bool isListener = false;
    bool receives = false;
  };

  static constexpr int kEpollEvents = 64;
  static constexpr uint32_t kMessages = 64;
  static constexpr int kRounds = 8;
  static constexpr double kTurnMs = 5;

  Id add(Descriptor fd, uint32_t maxBytes, bool isListener);
  void serve();
  // Returns whether more datagrams may be waiting.
  bool receive(Id id, Socket& socket);
  void addEvent(Id id, DatagramEvent kind, uint32_t offset, uint32_t length);
  void addDatagram(Id id, Socket& socket, const mmsghdr& message, uint32_t offset);
  void deliver();
  bool hasRoom(uint32_t slot) const;
  uint32_t sendGroup(uint32_t first, uint32_t count);

  DatagramArrays arrays_;
  DescriptorLimit limit_;
  DatagramHandler& handler_;
  EpollSet epoll_;
  SlotTable<Socket> sockets_;
  uv_poll_t poll_{};
  std::array<epoll_event, kEpollEvents> epollEvents_{};
  uint32_t eventCount_ = 0;
  uint32_t used_ = 0;  // of the receive window
  uint32_t released_ = 0;  // slots that events of this batch may still name
  bool open_ = false;
  bool serving_ = false;
};

}  // namespace baton
