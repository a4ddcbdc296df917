// envoy.filters.http.grpc_http1_bridge: lets HTTP/1.1 clients call unary methods of gRPC hosts. They read the outcome of the call in the
// head of the response, because they cannot read trailers.

import type { GrpcHttp1BridgeConfig } from '../../../../config/generated/api.js';
import { type HttpFilterExtension, obeyed, Protocol } from '../../../sdk.js';
import { GrpcHttp1BridgeFilter } from './grpc-http1-bridge-filter.js';

const CONFIG = 'envoy.extensions.filters.http.grpc_http1_bridge.v3.Config';

export const grpcHttp1Bridge: HttpFilterExtension<GrpcHttp1BridgeConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.grpc_http1_bridge',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: { [CONFIG]: obeyed('upgrade_protobuf_to_grpc', 'ignore_query_parameters') },
  createOnWorker(config) {
    const rules = {
      upgradesProtobuf: config.upgrade_protobuf_to_grpc ?? false,
      ignoresQuery: config.ignore_query_parameters ?? false,
    };
    return {
      create(stream) {
        const { protocol } = stream.info;
        const isHttp1 = protocol === Protocol.Http11 || protocol === Protocol.Http10;
        return isHttp1 ? new GrpcHttp1BridgeFilter(stream, rules) : undefined;
      },
    };
  },
};
