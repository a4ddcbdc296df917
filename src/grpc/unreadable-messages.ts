// Adds the reason to calls whose messages use a compression that grpc-js does not support: it ends them without code and details.
// https://github.com/grpc/grpc/blob/master/doc/compression.md

import { InterceptingCall, type Interceptor, status } from '@grpc/grpc-js';

/** Sets the status that the gRPC protocol defines for such calls. */
export const explainUnreadable: Interceptor = (options, nextCall) =>
  new InterceptingCall(nextCall(options), {
    start(metadata, _listener, next) {
      next(metadata, {
        onReceiveStatus(received, next) {
          // Although its type declares `code` as always set.
          next((received.code as number | undefined) === undefined ? { ...received, ...UNREADABLE } : received);
        },
      });
    },
  });

const UNREADABLE = {
  code: status.INTERNAL,
  details:
    'a message is marked as compressed, but grpc-encoding is neither gzip nor deflate: the service must name its compression or turn it off',
};
