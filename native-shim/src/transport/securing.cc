// TLS handshakes of connections.

#include <cerrno>

#include "transport/transport.h"

namespace baton {

int Transport::startTls(Id id, std::shared_ptr<TlsContext> context, TlsClientOptions options) {
  SocketRecord* connection = find(id, SocketKind::Connection);
  if (connection == nullptr) return ENOENT;
  if (connection->stream.tls() != nullptr) return EALREADY;
  if (connection->frozen) return EBUSY;
  if (!connection->stream.startTls(std::move(context), std::move(options), id, *this)) return ENOMEM;
  // Bytes that were shown are the first of the handshake.
  connection->peekLimit = 0;
  if (connection->peekedToEnd) connection->ended = false;
  connection->peekedToEnd = false;
  connection->readable = true;
  if (!connection->connecting) enqueue(id, *connection);
  return 0;
}

TlsSession* Transport::tls(Id id) {
  SocketRecord* connection = find(id, SocketKind::Connection);
  return connection == nullptr ? nullptr : connection->stream.tls();
}

void Transport::secure(Id id, SocketRecord& connection) {
  int error = 0;
  const TlsSession::Step step = connection.stream.tls()->handshake(connection.stream.descriptor(), error);
  // A handshake is long: the deadline of the turn must see it.
  now_ = nowMs(CLOCK_MONOTONIC);
  switch (step) {
    case TlsSession::Step::Wait:
      connection.readable = false;
      return reportPressure(id, connection);
    case TlsSession::Step::More:
      reportPressure(id, connection);
      return enqueue(id, connection);
    case TlsSession::Step::Broken:
      return reportReset(id, connection, error);
    case TlsSession::Step::Ended:
    case TlsSession::Step::Failed:
      connection.ended = step == TlsSession::Step::Ended;
      connection.dead = true;
      connection.stream.dropUnsent();
      return batch_.add(id, Event::HandshakeFailed);
    case TlsSession::Step::Done:
      break;
  }
  batch_.add(id, Event::Secured);
  // The bytes after the handshake wait for the next batch: JavaScript may pause the connection first.
  connection.servedInBatch = batch_.number();
  if (connection.stream.hasUnsent()) sendUnsent(id, connection);
  else endSending(connection);
  reportPressure(id, connection);
  enqueue(id, connection);
}

int Transport::verdict(int32_t connection, int error, int depth, X509* leaf, const std::string& rules) {
  observing_ = true;
  const int counts = handler_.verdict(connection, error, depth, leaf, rules);
  observing_ = false;
  return counts;
}

}  // namespace baton
