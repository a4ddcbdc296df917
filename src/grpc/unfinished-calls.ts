// Ends calls of whose end grpc-js is told nothing: those whose server has ended its side of the stream, and not said with which status
// (grpc-js waits for that as long as the client's own side is open), and those whose session has stopped.

import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { type experimental, status } from '@grpc/grpc-js';
import { endWhenStopped } from '../io/stopped-sessions.js';

export type Subchannel = ReturnType<experimental.SubchannelInterface['getRealSubchannel']>;

/** What a call has beyond its interface. */
interface Http2Call {
  readonly http2Stream: ClientHttp2Stream;
  getStatus(): object | null;
}

const watched = new WeakSet<Subchannel>();

/** The calls that the subchannel makes from now on end with UNKNOWN in the first case, with INTERNAL in the other. */
export function endUnfinishedCalls(subchannel: Subchannel): void {
  if (watched.has(subchannel)) return;
  watched.add(subchannel);
  const createCall = subchannel.createCall.bind(subchannel);
  subchannel.createCall = (...settings) => {
    const call = createCall(...settings);
    const { http2Stream } = call as unknown as Http2Call;
    if (http2Stream.session !== undefined) endWhenStopped(http2Stream.session as ClientHttp2Session);
    // Trailers come in the same turn, if they do.
    http2Stream.once('end', () => {
      setImmediate(() => {
        if ((call as unknown as Http2Call).getStatus() !== null) return;
        call.cancelWithStatus(status.UNKNOWN, 'the server has ended the stream without a status');
      });
    });
    return call;
  };
}
