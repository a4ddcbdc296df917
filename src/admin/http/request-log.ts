// admin.access_log: tells access loggers of the requests to the admin interface.

import type { OutgoingHttpHeaders } from 'node:http';
import type { AccessLogger } from '../../access-log/access-logger.js';
import { GuardedLogger } from '../../access-log/guarded-logger.js';
import type { HeaderView } from '../../access-log/stream/header-view.js';
import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { type Protocol, StreamInfo } from '../../access-log/stream/stream-info.js';
import type { HeaderKey } from '../../common/text/header-names.js';
import { Level } from '../../log/levels.js';
import { getLogger } from '../../log/logger.js';

/** A request that has ended. */
export interface EndedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly protocol: Protocol;
  readonly requestHeaders: OutgoingHttpHeaders;
  readonly responseHeaders: OutgoingHttpHeaders;
  /** 0 when the client left before there was an answer. */
  readonly status: number;
  /** Why it got this answer, where it is not that of an endpoint. */
  readonly details: string | undefined;
  /** Of the bodies. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** The client left before the end of the answer. */
  readonly isCut: boolean;
  /** `127.0.0.1:1234`; '' for a Unix socket. */
  readonly peer: string;
  readonly localAddress: string;
  readonly startRealtimeMs: number;
  /** Monotonic. */
  readonly startMs: number;
  readonly receivedMs: number;
  readonly endMs: number;
}

const logger = getLogger('admin');

const LEFT = 'downstream_remote_disconnect';
const ANSWERED = 'admin_filter_response';

export class RequestLog {
  readonly #loggers: readonly AccessLogger[];
  readonly #info = new StreamInfo();

  constructor(loggers: readonly AccessLogger[]) {
    const report = (error: unknown) =>
      logger.exception(Level.Error, 'an access logger of the admin interface failed', error);
    this.#loggers = loggers.map((each) => new GuardedLogger(each, report));
  }

  log(request: EndedRequest): void {
    const info = this.#info;
    info.reset(request.startRealtimeMs, request.startMs);
    info.durationMs = request.endMs - request.startMs;
    info.protocol = request.protocol;
    info.scheme = 'http';
    info.responseCode = request.status;
    info.responseCodeDetails = request.details ?? (request.status === 0 ? LEFT : ANSWERED);
    info.responseFlags = request.isCut ? ResponseFlag.DownstreamConnectionTermination : ResponseFlag.None;
    if (request.details?.startsWith('http1.')) info.responseFlags |= ResponseFlag.DownstreamProtocolError;
    info.bytesReceived = request.bytesReceived;
    info.bytesSent = request.bytesSent;
    info.requestHeaders = new TextHeaders(request.method, request.target, 0, request.requestHeaders);
    info.responseHeaders = new TextHeaders('', '', request.status, request.responseHeaders);
    info.downstream = { remoteText: request.peer, localText: request.localAddress };
    info.lastDownstreamRxMs = request.receivedMs;
    info.lastDownstreamTxMs = request.endMs;
    for (const each of this.#loggers) each.log(info);
  }
}

/** Headers that are texts, as formatters read them. */
class TextHeaders implements HeaderView {
  readonly memory: { readonly bytes: Buffer };
  readonly status: number;
  readonly methodStart = 0;
  readonly methodEnd: number;
  readonly pathStart: number;
  readonly pathEnd: number;
  readonly #names: string[] = [];
  readonly #ends: number[] = [];

  constructor(method: string, path: string, status: number, headers: OutgoingHttpHeaders) {
    this.status = status;
    const texts = [method, path];
    let end = (this.methodEnd = this.pathStart = method.length);
    this.pathEnd = end += path.length;
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined) continue;
      const text = Array.isArray(value) ? value.join(',') : String(value);
      this.#names.push(name.toLowerCase());
      texts.push(text);
      this.#ends.push((end += text.length));
    }
    // Header texts of Node are bytes, a character each.
    this.memory = { bytes: Buffer.from(texts.join(''), 'latin1') };
  }

  find(key: HeaderKey): number {
    return this.#names.indexOf(key.name);
  }

  valueStart(index: number): number {
    return index === 0 ? this.pathEnd : this.#ends[index - 1]!;
  }

  valueEnd(index: number): number {
    return this.#ends[index]!;
  }

  get(key: HeaderKey): string | undefined {
    const index = this.find(key);
    return index < 0 ? undefined : this.memory.bytes.toString('latin1', this.valueStart(index), this.valueEnd(index));
  }
}
