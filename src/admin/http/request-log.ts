// admin.access_log: passes requests to the admin interface to access loggers.

import type { OutgoingHttpHeaders } from 'node:http';
import type { AccessLogger } from '../../access-log/access-logger.js';
import { GuardedLogger } from '../../access-log/guarded-logger.js';
import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { type Protocol, StreamInfo } from '../../access-log/stream/stream-info.js';
import { TextHeaders } from '../../access-log/stream/text-headers.js';
import { isLoopback } from '../../http/headers/edge/edge-lines.js';
import { getLogger } from '../../log/logger.js';

/** A request that has ended. */
export interface EndedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly protocol: Protocol;
  readonly requestHeaders: OutgoingHttpHeaders;
  readonly responseHeaders: OutgoingHttpHeaders;
  /** 0 if the client disconnected before there was an answer. */
  readonly status: number;
  /** The reason for an answer that is not from an endpoint. */
  readonly details: string | undefined;
  /** Sizes of the bodies. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** The client disconnected before the end of the answer. */
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

  readonly #localIp: string;

  /** `localIp`: this machine's address, which x-forwarded-for has for clients on it, as in Envoy's HTTP layer. */
  constructor(loggers: readonly AccessLogger[], localIp: string) {
    this.#localIp = localIp;
    const report = (error: unknown) => logger.error({ err: error }, 'an access logger of the admin interface failed');
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
    info.requestHeaders = TextHeaders.ofRequest(request.method, request.target, this.#forwarded(request));
    info.responseHeaders = TextHeaders.ofResponse(request.status, request.responseHeaders);
    const { localAddress, peer } = request;
    info.downstream = {
      remoteText: peer,
      directRemoteText: peer,
      localText: localAddress,
      directLocalText: localAddress,
      security: undefined,
      transportFailure: '',
      detected: undefined,
    };
    info.lastDownstreamRxMs = request.receivedMs;
    info.lastDownstreamTxMs = request.endMs;
    for (const each of this.#loggers) each.log(info);
  }

  /** Returns the headers with the client's address in x-forwarded-for. */
  #forwarded({ peer, requestHeaders }: EndedRequest): OutgoingHttpHeaders {
    const ip = /^\[?(.*?)\]?:\d+$/.exec(peer)?.[1];
    if (ip === undefined) return requestHeaders;
    const former = requestHeaders['x-forwarded-for'] ?? [];
    const addresses = [former, isLoopback(ip) ? this.#localIp : ip].flat();
    return { ...requestHeaders, 'x-forwarded-for': addresses.join(',') };
  }
}
