// Converts Http2ProtocolOptions to the options of a codec.

import { durationMs } from '../../common/time/duration.js';
import type { Http2ProtocolOptions, KeepaliveSettings } from '../../config/generated/api.js';
import { DEFAULT_HTTP2_OPTIONS, type Http2Options } from '../codec/options.js';

/** The options that other messages have. */
export type HeadLimits = Pick<Http2Options, 'maxHeadBytes' | 'maxHeaders' | 'flushTimeoutMs' | 'underscores'>;

export function http2Options(config: Http2ProtocolOptions | undefined, limits: HeadLimits): Http2Options {
  const standard = DEFAULT_HTTP2_OPTIONS;
  return {
    tableBytes: config?.hpack_table_size ?? standard.tableBytes,
    maxStreams: config?.max_concurrent_streams ?? standard.maxStreams,
    streamWindow: config?.initial_stream_window_size ?? standard.streamWindow,
    connectionWindow: config?.initial_connection_window_size ?? standard.connectionWindow,
    maxOutboundFrames: config?.max_outbound_frames ?? standard.maxOutboundFrames,
    maxOutboundControlFrames: config?.max_outbound_control_frames ?? standard.maxOutboundControlFrames,
    maxEmptyFrames: config?.max_consecutive_inbound_frames_with_empty_payload ?? standard.maxEmptyFrames,
    maxPriorityFramesPerStream: config?.max_inbound_priority_frames_per_stream ?? standard.maxPriorityFramesPerStream,
    maxWindowUpdatesPerDataFrame:
      config?.max_inbound_window_update_frames_per_data_frame_sent ?? standard.maxWindowUpdatesPerDataFrame,
    keepsConnectionOnInvalidMessage:
      config?.override_stream_error_on_invalid_http_message ?? standard.keepsConnectionOnInvalidMessage,
    allowsConnectProtocol: config?.allow_connect ?? standard.allowsConnectProtocol,
    usesHuffman: config?.enable_huffman_encoding ?? standard.usesHuffman,
    keepaliveIntervalMs: durationMs(config?.connection_keepalive?.interval, 0),
    keepaliveTimeoutMs: durationMs(config?.connection_keepalive?.timeout, 0),
    keepaliveJitterPercent: jitterPercent(config?.connection_keepalive) ?? standard.keepaliveJitterPercent,
    keepaliveIdleMs: durationMs(config?.connection_keepalive?.connection_idle_interval, 0),
    ...limits,
  };
}

/** As in Envoy, in whole percents. */
function jitterPercent(settings: KeepaliveSettings | undefined): number | undefined {
  const percent = settings?.interval_jitter;
  return percent && Math.round(Number(percent.value ?? 0));
}
