// Entries of TCP logs (envoy.data.accesslog.v3.TCPAccessLogEntry).

import { randomUUID } from 'node:crypto';
import type { TcpGrpcAccessLogConfig } from '../../../config/generated/api.js';
import { writeNumber } from '../../messages/wire.js';
import { type HeaderNeeds, ProtobufWriter, type StreamInfo } from '../../sdk.js';
import { CommonProperties } from './common-properties.js';

const entry = new ProtobufWriter();
const connection = new ProtobufWriter();

export class TcpEntries {
  readonly #common: CommonProperties;

  /** See CommonProperties. */
  constructor(config: TcpGrpcAccessLogConfig, needs: HeaderNeeds) {
    this.#common = new CommonProperties(config.common_config!, needs, 'common_config');
  }

  /** Returns the encoded entry. */
  encode(info: StreamInfo): Uint8Array {
    info.streamId ||= randomUUID();
    entry.clear();
    this.#common.write(entry, 1, info);
    connection.clear();
    writeNumber(connection, 1, info.bytesReceived);
    writeNumber(connection, 2, info.bytesSent);
    entry.message(2, connection);
    return entry.copy();
  }
}
