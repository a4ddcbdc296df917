// What onStreamEnd gets.

import type { StreamEnd } from '../../../../api/index.js';
import { type StreamInfo, shortFlags } from '../../../sdk.js';

export function streamEnd(info: StreamInfo): StreamEnd {
  return {
    status: info.responseCode,
    flags: shortFlags(info.responseFlags),
    details: info.responseCodeDetails,
    durationMs: info.durationMs,
    bytesReceived: info.bytesReceived,
    bytesSent: info.bytesSent,
  };
}
