// envoy.filters.http.grpc_web: serves gRPC-Web clients, which cannot read trailers, from gRPC hosts
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md).

import type { GrpcWeb } from '../../../../config/generated/api.js';
import { grpcWebCalls } from '../../../grpc/call-stats.js';
import type { HttpFilterExtension } from '../../../sdk.js';
import { GrpcWebFilter } from './grpc-web-filter.js';

const CONFIG = 'envoy.extensions.filters.http.grpc_web.v3.GrpcWeb';

export const grpcWeb: HttpFilterExtension<GrpcWeb> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.grpc_web',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: { [CONFIG]: {} },
  createOnWorker: () => ({ create: (stream) => new GrpcWebFilter(stream, grpcWebCalls) }),
};
