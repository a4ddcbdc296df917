// The access log of a DNS filter: one record for each query.

import { type AccessLogger, type Clock, type DatagramPath, StreamInfo, type UdpSocket } from '../../../sdk.js';
import { describeClient } from '../common/describe-client.js';
import { type Query, QueryMistake, type ResponseCode } from './message.js';

export interface AnsweredQuery {
  readonly query: Query;
  readonly code: ResponseCode;
  /** Number of answers, also of those that did not fit. */
  readonly answers: number;
  readonly path: DatagramPath;
  readonly socket: UdpSocket;
  readonly startMs: number;
}

export class QueryLog {
  readonly #logs: readonly AccessLogger[];
  readonly #clock: Clock;
  readonly #info = new StreamInfo();

  constructor(logs: readonly AccessLogger[], clock: Clock) {
    this.#logs = logs;
    this.#clock = clock;
  }

  log({ answers, code, path, query, socket, startMs }: AnsweredQuery): void {
    if (this.#logs.length === 0) return;
    const info = this.#info;
    const durationMs = this.#clock.monotonicMs - startMs;
    const isParsed = query.mistake === QueryMistake.None;
    info.reset(this.#clock.realtimeMs - durationMs, startMs);
    info.durationMs = durationMs;
    info.responseCode = code;
    info.dns = { isParsed, name: shown(query.name), type: query.type, answers };
    info.downstream = describeClient({ path, socket });
    for (const log of this.#logs) log.log(info);
  }

  close(): void {
    for (const log of this.#logs) log.close();
  }
}

/** Clients choose the bytes of a name: those that could break a line are written as in zone files, \DDD (RFC 1035 section 5.1). */
function shown(name: string): string {
  return name.replace(/[^\x21-\x5b\x5d-\x7e]/g, (byte) => `\\${String(byte.charCodeAt(0)).padStart(3, '0')}`);
}
