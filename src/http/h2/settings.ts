// SETTINGS (RFC 9113, section 6.5): those of the peer, and the frame with this side's.

import type { Http2Options } from '../codec/options.js';
import { DEFAULT_WINDOW, ErrorCode, MAX_FRAME_BYTES, MAX_WINDOW, readUint32, writeUint32 } from './frames.js';

export const enum Setting {
  HeaderTableSize = 1,
  EnablePush = 2,
  MaxConcurrentStreams = 3,
  InitialWindowSize = 4,
  MaxFrameSize = 5,
  MaxHeaderListSize = 6,
  EnableConnectProtocol = 8,
}

export const SETTING_BYTES = 6;
const MAX_FRAME_SIZE = 0xffffff;

/** The settings of a peer. */
export class PeerSettings {
  headerTableBytes = 4096;
  /** Unlimited until the peer sets a limit. */
  maxStreams = Number.POSITIVE_INFINITY;
  initialWindow = DEFAULT_WINDOW;
  maxFrameBytes = MAX_FRAME_BYTES;

  /** Applies the settings in bytes[at, end), in order. Returns an error code. `isServer`: the peer is a server. */
  apply(bytes: Uint8Array, at: number, end: number, isServer: boolean): ErrorCode {
    for (; at < end; at += SETTING_BYTES) {
      const value = readUint32(bytes, at + 2);
      switch ((bytes[at]! << 8) | bytes[at + 1]!) {
        case Setting.HeaderTableSize:
          this.headerTableBytes = value;
          break;
        case Setting.EnablePush:
          if (value > 1 || (isServer && value === 1)) return ErrorCode.ProtocolError;
          break;
        case Setting.MaxConcurrentStreams:
          this.maxStreams = value;
          break;
        case Setting.InitialWindowSize:
          if (value > MAX_WINDOW) return ErrorCode.FlowControlError;
          this.initialWindow = value;
          break;
        case Setting.MaxFrameSize:
          if (value < MAX_FRAME_BYTES || value > MAX_FRAME_SIZE) return ErrorCode.ProtocolError;
          this.maxFrameBytes = value;
          break;
        case Setting.EnableConnectProtocol:
          if (value > 1) return ErrorCode.ProtocolError;
          break;
      }
    }
    return ErrorCode.NoError;
  }
}

/** The settings that this side sends, in Envoy's order. */
export function ownSettings(options: Http2Options, isServer: boolean): [Setting, number][] {
  const settings: [Setting, number][] = isServer ? [] : [[Setting.EnablePush, 0]];
  settings.push(
    [Setting.HeaderTableSize, options.tableBytes],
    [Setting.EnableConnectProtocol, options.allowsConnectProtocol ? 1 : 0],
    [Setting.MaxConcurrentStreams, options.maxStreams],
    [Setting.InitialWindowSize, options.streamWindow],
  );
  return settings;
}

/** Writes settings to bytes[at …]. */
export function writeSettings(bytes: Uint8Array, at: number, settings: readonly (readonly [Setting, number])[]): void {
  for (const [name, value] of settings) {
    bytes[at] = name >>> 8;
    bytes[at + 1] = name;
    writeUint32(bytes, at + 2, value);
    at += SETTING_BYTES;
  }
}
