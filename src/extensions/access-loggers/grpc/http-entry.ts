// Entries of HTTP logs (envoy.data.accesslog.v3.HTTPAccessLogEntry).

import type { HttpGrpcAccessLogConfig } from '../../../config/generated/api.js';
import { writeMapText, writeNumber, writeText, writeWrapped } from '../../messages/wire.js';
import {
  downstreamBytes,
  type HeaderKey,
  type HeaderNeeds,
  type HeaderView,
  headBytes,
  headerKey,
  ProtobufWriter,
  type StreamInfo,
  upstreamBytes,
} from '../../sdk.js';
import { CommonProperties } from './common-properties.js';

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
const REFERER = headerKey('referer');
const FORWARDED_FOR = headerKey('x-forwarded-for');
const REQUEST_ID = headerKey('x-request-id');
const ORIGINAL_PATH = headerKey('x-envoy-original-path');
const READ = [HOST, USER_AGENT, REFERER, FORWARDED_FOR, REQUEST_ID, ORIGINAL_PATH];

/** RequestMethod in the order of its numbers. */
const METHODS = ['', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

const entry = new ProtobufWriter();
const part = new ProtobufWriter();

/** A header to log. */
interface Logged {
  /** In lower case. */
  readonly name: string;
  readonly key: HeaderKey;
}

export class HttpEntries {
  readonly #common: CommonProperties;
  readonly #request: readonly Logged[];
  readonly #response: readonly Logged[];
  readonly #trailers: readonly Logged[];

  /** See CommonProperties. */
  constructor(config: HttpGrpcAccessLogConfig, needs: HeaderNeeds) {
    this.#common = new CommonProperties(config.common_config!, needs, 'common_config');
    this.#request = logged(config.additional_request_headers_to_log, needs.request);
    this.#response = logged(config.additional_response_headers_to_log, needs.response);
    this.#trailers = logged(config.additional_response_trailers_to_log, needs.trailers);
    for (const { name } of READ) needs.request.add(name);
    // Any name: the head must be kept.
    needs.request.add(':path');
    needs.response.add('date');
  }

  /** Returns the encoded entry. */
  encode(info: StreamInfo): Uint8Array {
    entry.clear();
    this.#common.write(entry, 1, info);
    writeNumber(entry, 2, info.protocol);
    this.#writeRequest(info);
    this.#writeResponse(info);
    return entry.copy();
  }

  #writeRequest(info: StreamInfo): void {
    part.clear();
    // The head of an invalid request may have no path: Envoy logs nothing of it.
    const head = info.requestHeaders?.pathEnd === info.requestHeaders?.pathStart ? undefined : info.requestHeaders;
    if (head !== undefined) {
      writeNumber(part, 1, METHODS.indexOf(head.memory.text(head.methodStart, head.methodEnd)));
      writeText(part, 2, info.scheme);
      writeText(part, 3, head.get(HOST) ?? '');
      writeText(part, 5, pathOf(head));
      writeText(part, 6, head.get(USER_AGENT) ?? '');
      writeText(part, 7, head.get(REFERER) ?? '');
      writeText(part, 8, head.get(FORWARDED_FOR) ?? '');
      writeText(part, 9, head.get(REQUEST_ID) ?? '');
      writeText(part, 10, head.get(ORIGINAL_PATH) ?? '');
    }
    if (head !== undefined) writeNumber(part, 11, headBytes.request(info));
    writeNumber(part, 12, info.bytesReceived);
    if (head !== undefined) for (const each of this.#request) writeHeader(13, head, each);
    writeNumber(part, 14, upstreamBytes.headersSent(info));
    writeNumber(part, 15, downstreamBytes.headersReceived(info));
    entry.message(3, part);
  }

  #writeResponse(info: StreamInfo): void {
    const { responseHeaders: head, responseTrailers: trailers } = info;
    part.clear();
    if (info.responseCode > 0) writeWrapped(part, 1, info.responseCode);
    writeNumber(part, 2, headBytes.response(info));
    writeNumber(part, 3, info.bytesSent);
    if (head !== undefined) for (const each of this.#response) writeHeader(4, head, each);
    if (trailers !== undefined) for (const each of this.#trailers) writeHeader(5, trailers, each);
    writeText(part, 6, info.responseCodeDetails);
    writeNumber(part, 7, upstreamBytes.headersReceived(info));
    writeNumber(part, 8, downstreamBytes.headersSent(info));
    entry.message(4, part);
  }
}

function logged(names: readonly string[] | undefined, needs: Set<string>): Logged[] {
  return (names ?? []).map((written) => {
    const name = written.toLowerCase();
    needs.add(name);
    return { name, key: headerKey(name === ':authority' ? 'host' : name.replace(/^:/, '')) };
  });
}

/** Writes all values of a field, joined by commas as in Envoy, if there is one. */
function writeHeader(field: number, head: HeaderView, { key, name }: Logged): void {
  const value = name.startsWith(':') && name !== ':authority' ? pseudoHeader(head, name) : joinedValues(head, key);
  if (value !== undefined) writeMapText(part, field, name, value);
}

function joinedValues(head: HeaderView, key: HeaderKey): string | undefined {
  let text: string | undefined;
  for (let index = head.find(key); index >= 0; index = head.findNext(key, index)) {
    const value = head.memory.text(head.valueStart(index), head.valueEnd(index));
    text = text === undefined ? value : `${text},${value}`;
  }
  return text;
}

function pseudoHeader(head: HeaderView, name: string): string | undefined {
  switch (name) {
    case ':path':
      return pathOf(head);
    case ':method':
      return head.memory.text(head.methodStart, head.methodEnd);
    case ':scheme':
      return head.scheme;
    case ':status':
      return head.status > 0 ? String(head.status) : undefined;
    default:
      return undefined;
  }
}

function pathOf(head: HeaderView): string {
  return head.memory.text(head.pathStart, head.pathEnd);
}
