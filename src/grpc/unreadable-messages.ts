// Why a call ends whose messages are compressed in a way that grpc-js does not know: it keeps that to itself, and ends the call
// with neither code nor details. https://github.com/grpc/grpc/blob/master/doc/compression.md

import { InterceptingCall, type Interceptor, status } from '@grpc/grpc-js';

/** Gives such calls the status that the protocol has for them. */
export const explainUnreadable: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, _listener, next) {
      next(metadata, {
        onReceiveStatus(received, next) {
          // Of the type it is always there.
          next((received.code as number | undefined) === undefined ? { ...received, ...UNREADABLE } : received);
        },
      });
    },
  });

const UNREADABLE = {
  code: status.INTERNAL,
  details:
    'a message is marked as compressed, and grpc-encoding names neither gzip nor deflate: the service must say how it is ' +
    'compressed, or turn its compression off',
};
