// Ends calls whose end grpc-js does not detect: the server has ended its side of the stream without a status (grpc-js waits for
// one while the client's side is open), or the session has stopped.

import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { type experimental, status } from '@grpc/grpc-js';
import { endWhenStopped } from '../io/stopped-sessions.js';

export type Subchannel = ReturnType<experimental.SubchannelInterface['getRealSubchannel']>;

/** Members of a call that are not in its interface. */
interface Http2Call {
  readonly http2Stream: ClientHttp2Stream;
  getStatus(): object | null;
}

const watched = new WeakSet<Subchannel>();

/** Watches further calls of a subchannel. They end with UNKNOWN in the first case and with INTERNAL in the second. */
export function endUnfinishedCalls(subchannel: Subchannel): void {
  if (watched.has(subchannel)) return;
  watched.add(subchannel);
  const createCall = subchannel.createCall.bind(subchannel);
  subchannel.createCall = (...settings) => {
    const call = createCall(...settings);
    const { http2Stream } = call as unknown as Http2Call;
    if (http2Stream.session !== undefined) endWhenStopped(http2Stream.session as ClientHttp2Session);
    // Trailers, if any, arrive in the same turn.
    http2Stream.once('end', () => {
      setImmediate(() => {
        if ((call as unknown as Http2Call).getStatus() !== null) return;
        call.cancelWithStatus(status.UNKNOWN, 'the server ended the stream without a status');
      });
    });
    return call;
  };
}
