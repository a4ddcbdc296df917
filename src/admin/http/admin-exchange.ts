// One request to the admin interface and its response.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { Protocol } from '../../access-log/stream/stream-info.js';
import { type AdminIncoming, type AdminOutgoing, isGone } from './messages/exchange.js';
import { normalizedTarget, parseTarget } from './messages/request-target.js';

export class Exchange {
  readonly request: AdminIncoming;
  readonly response: AdminOutgoing;
  readonly socket: Socket;
  readonly method: string;
  /** Normalized path and query. */
  readonly target: string;
  /** The path cannot be normalized. */
  readonly hasBadPath: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly protocol: Protocol;
  /** See peerOf(). */
  readonly peer: string;
  readonly startRealtimeMs = Date.now();
  readonly startMs = performance.now();
  receivedMs = this.startMs;
  bytesReceived = 0;
  bytesSent = 0;
  /** 0 until the request is answered. */
  status = 0;
  /** See EndedRequest. */
  details: string | undefined;

  constructor(request: AdminIncoming, response: AdminOutgoing, socket: Socket) {
    this.request = request;
    this.response = response;
    this.socket = socket;
    this.method = request.method ?? 'GET';
    const { path, authority } = parseTarget(request.url ?? '/');
    const target = normalizedTarget(path);
    this.target = target ?? path;
    this.hasBadPath = target === undefined;
    const isHttp2 = request.httpVersionMajor === 2;
    // HTTP/2 has its own field for the host.
    const host = authority ?? (isHttp2 ? authorityOf(request.headers) : undefined);
    this.headers = host === undefined ? request.headers : { ...request.headers, host };
    this.protocol = isHttp2 ? Protocol.Http2 : request.httpVersionMinor === 0 ? Protocol.Http10 : Protocol.Http11;
    this.peer = peerOf(socket);
  }

  /** All header fields as received, including those that `headers` joins or omits; only the host is that of `headers`. */
  get fields(): OutgoingHttpHeaders {
    const { host } = this.headers;
    return host === undefined ? fieldsOf(this.request) : { ...fieldsOf(this.request), host };
  }

  /** The client disconnected before the end of the response. */
  get isCut(): boolean {
    return this.status === 0 || (isGone(this.response) && !this.response.writableEnded);
  }

  /** The client has reset the request, or was cut off, while its connection is still open. */
  get wasReset(): boolean {
    return this.protocol === Protocol.Http2 && this.isCut && !this.socket.destroyed;
  }

  received(body: Buffer | undefined): void {
    this.receivedMs = performance.now();
    this.bytesReceived = body?.length ?? 0;
  }
}

/** Returns `127.0.0.1:1234`; '' for a Unix socket. */
export function peerOf({ remoteAddress, remotePort, remoteFamily }: Socket): string {
  if (remoteAddress === undefined) return '';
  return remoteFamily === 'IPv6' ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

/** Returns the header fields by lower-case name, repeated ones as separate values, without pseudo-headers. */
export function fieldsOf({ rawHeaders }: { readonly rawHeaders: readonly string[] }): OutgoingHttpHeaders {
  const fields = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (name.startsWith(':')) continue;
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [rawHeaders[at + 1]!]);
    else values.push(rawHeaders[at + 1]!);
  }
  return Object.fromEntries(fields);
}

function authorityOf(headers: IncomingHttpHeaders): string | undefined {
  const authority = headers[':authority'];
  return typeof authority === 'string' ? authority : undefined;
}
