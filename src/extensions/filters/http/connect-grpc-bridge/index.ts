// envoy.filters.http.connect_grpc_bridge: serves clients of the Connect protocol from gRPC hosts (https://connectrpc.com/docs/protocol).

import type { ConnectGrpcBridgeFilterConfig } from '../../../../config/generated/api.js';
import type { HttpFilterExtension } from '../../../sdk.js';
import { ConnectBridgeFilter } from './connect-bridge-filter.js';

const CONFIG = 'envoy.extensions.filters.http.connect_grpc_bridge.v3.FilterConfig';

export const connectGrpcBridge: HttpFilterExtension<ConnectGrpcBridgeFilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.connect_grpc_bridge',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: { [CONFIG]: {} },
  createOnWorker: () => ({ create: (stream) => new ConnectBridgeFilter(stream) }),
};
