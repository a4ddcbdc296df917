// StreamInfo objects for tests, as the connection manager fills them.

import { Protocol, StreamInfo } from '../../src/access-log/stream/stream-info.js';
import { headerKey } from '../../src/common/text/header-names.js';
import { HeaderBlock, Method } from '../../src/http/headers/header-block.js';
import { Memory } from '../../src/io/memory.js';

const memory = new Memory({ receiveBytes: 4096, scratchBytes: 256 * 1024, arenaBytes: 6 * 64 * 1024 });

export type Fields = Readonly<Record<string, string>>;

/** Creates a head with any bytes in values; add() would refuse invalid ones. */
export function fields(values: Fields): HeaderBlock {
  const block = new HeaderBlock(memory);
  for (const [name, value] of Object.entries(values)) {
    const start = block.writeText(`${name}: ${value}\r\n`);
    const valueStart = start + name.length + 2;
    const valueEnd = valueStart + value.length;
    block.addField(headerKey(name).id, start, start + name.length, valueStart, valueEnd, valueEnd + 2);
  }
  return block;
}

export function request(path: string, values: Fields = {}): HeaderBlock {
  const block = fields(values);
  block.setMethod(Method.Get, 'GET');
  block.setPath(path);
  return block;
}

export function response(status: number, values: Fields = {}): HeaderBlock {
  const block = fields(values);
  block.status = status;
  return block;
}

/** A successful request with `changes`. */
export function stream(changes: Partial<StreamInfo> = {}): StreamInfo {
  const info = new StreamInfo();
  info.reset(Date.UTC(2016, 3, 15, 20, 17, 0) + 310, 5000);
  info.protocol = Protocol.Http11;
  info.scheme = 'http';
  info.responseCode = 204;
  info.responseCodeDetails = 'via_upstream';
  info.bytesReceived = 154;
  info.durationMs = 226.9;
  info.requestHeaders = request('/api/v1/locations?x=1', {
    host: 'locations',
    'user-agent': 'nsq2http',
    'x-forwarded-for': '10.0.35.28',
    'x-request-id': 'cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2',
    'x-custom': 'custom value',
    'x-empty': '',
  });
  info.responseHeaders = response(204, { 'x-envoy-upstream-service-time': '100', server: 'baton' });
  info.upstreamHost = info.upstreamRemoteAddress = '10.0.2.1:80';
  info.upstreamCluster = { name: 'places.v2', observabilityName: 'places' };
  info.routeName = 'to_places';
  info.inferredRemoteAddress = '10.0.35.28:0';
  info.downstream = {
    remoteText: '192.0.2.7:4242',
    directRemoteText: '[2001:db8::1]:51234',
    localText: '/run/baton.sock',
    directLocalText: '/run/baton.sock',
    security: undefined,
    transportFailure: '',
    detected: undefined,
  };
  info.connectionId = 17;
  info.attemptCount = 2;
  info.lastDownstreamRxMs = 5001.5;
  info.firstUpstreamTxMs = 5002;
  info.lastUpstreamTxMs = 5003;
  info.firstUpstreamRxMs = 5100;
  info.lastUpstreamRxMs = 5150;
  info.firstDownstreamTxMs = 5101;
  info.lastDownstreamTxMs = 5226;
  return Object.assign(info, changes);
}

/** A TCP connection: no heads, no status. */
export function tcpStream(changes: Partial<StreamInfo> = {}): StreamInfo {
  const info = new StreamInfo();
  info.reset(Date.UTC(2016, 3, 15, 20, 17, 0), 5000);
  return Object.assign(info, changes);
}
