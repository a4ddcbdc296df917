// envoy.filters.http.grpc_http1_reverse_bridge: lets gRPC clients call hosts that only know plain HTTP, and know nothing of trailers and
// frames.

import type {
  GrpcHttp1ReverseBridgeFilterConfig as BridgeConfig,
  FilterConfigPerRoute,
} from '../../../../config/generated/api.js';
import { byteText, type HttpFilterExtension, headerKey, obeyed, reportMistakes, unpack } from '../../../sdk.js';
import { ReverseBridgeFilter, type ReverseBridgeRules } from './reverse-bridge-filter.js';

const PACKAGE = 'envoy.extensions.filters.http.grpc_http1_reverse_bridge.v3';

export const grpcHttp1ReverseBridge: HttpFilterExtension<BridgeConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.grpc_http1_reverse_bridge',
  typeUrls: [`type.googleapis.com/${PACKAGE}.FilterConfig`, `type.googleapis.com/${PACKAGE}.FilterConfigPerRoute`],
  implemented: {
    [`${PACKAGE}.FilterConfig`]: obeyed('content_type', 'withhold_grpc_frames', 'response_size_header'),
    [`${PACKAGE}.FilterConfigPerRoute`]: obeyed('disabled'),
  },
  validate(config, report) {
    const filter = unpack(config, `${PACKAGE}.FilterConfig`);
    if (filter === undefined) return;
    if (/[\0\r\n]/.test(filter.content_type ?? '')) report('content_type', 'it must be one line');
    if (filter.response_size_header && !filter.withhold_grpc_frames)
      report('response_size_header', 'it has no effect without withhold_grpc_frames');
    reportMistakes(report, 'response_size_header', () => rulesOf(filter));
  },
  createOnWorker(config) {
    const rules = rulesOf(config);
    return {
      create: (stream, isDisabled) => (isDisabled === true ? undefined : new ReverseBridgeFilter(stream, rules)),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs) => (configs.at(-1) as FilterConfigPerRoute | undefined)?.disabled === true,
};

function rulesOf(config: BridgeConfig): ReverseBridgeRules {
  const { content_type: type = '', response_size_header: size = '', withhold_grpc_frames: withholds = false } = config;
  return {
    contentType: byteText(type),
    withholdsFrames: withholds,
    sizeHeader: size === '' ? undefined : headerKey(size),
  };
}
