// Writes traces as JSON: the proto JSON form with the API's field names, indented, including empty lists and default flags.

import { endpointIdOf, internalNameOf, isInternalText } from '../../../../sdk.js';
import {
  type BufferedTrace,
  Piece,
  splitAddress,
  type TracedBody,
  type TracedConnection,
  type TracedHeader,
  type TracedMessage,
  type TraceFormat,
  type TraceSegment,
} from './trace.js';

const PIECE_NAMES: Readonly<Record<Piece, string>> = {
  [Piece.RequestHeaders]: 'request_headers',
  [Piece.RequestBody]: 'request_body_chunk',
  [Piece.RequestTrailers]: 'request_trailers',
  [Piece.ResponseHeaders]: 'response_headers',
  [Piece.ResponseBody]: 'response_body_chunk',
  [Piece.ResponseTrailers]: 'response_trailers',
};

export class JsonFormat implements TraceFormat {
  readonly #bodyField: 'as_bytes' | 'as_string';

  /** @param bodyField whether bodies are written as base64, or as text in which invalid UTF-8 is replaced */
  constructor(bodyField: 'as_bytes' | 'as_string') {
    this.#bodyField = bodyField;
  }

  buffered({ request, response, connection }: BufferedTrace): Uint8Array<ArrayBuffer> {
    return text({
      http_buffered_trace: {
        request: request && this.#message(request),
        response: response && this.#message(response),
        downstream_connection: connection && connectionOf(connection),
      },
    });
  }

  segment({ traceId, piece, content }: TraceSegment): Uint8Array<ArrayBuffer> {
    const held = 'bytes' in content ? this.#body(content) : { headers: content.map(headerOf) };
    return text({ http_streamed_trace_segment: { trace_id: String(traceId), [PIECE_NAMES[piece]]: held } });
  }

  #message({ headers, body, trailers, receivedMs }: TracedMessage): object {
    return {
      headers: headers.map(headerOf),
      body: body && this.#body(body),
      trailers: trailers.map(headerOf),
      headers_received_time: receivedMs === undefined ? undefined : new Date(receivedMs).toISOString(),
    };
  }

  #body({ bytes, isTruncated }: TracedBody): object {
    const encoding = this.#bodyField === 'as_bytes' ? 'base64' : 'utf8';
    return { truncated: isTruncated, [this.#bodyField]: Buffer.from(bytes).toString(encoding) };
  }
}

/** Each trace ends with a line break. */
function text(trace: object): Uint8Array<ArrayBuffer> {
  return UTF8.encode(`${JSON.stringify(trace, null, 1)}\n`);
}

const UTF8 = new TextEncoder();

function headerOf({ key, value, raw }: TracedHeader): object {
  return { key, value, raw_value: raw === undefined ? '' : Buffer.from(raw).toString('base64') };
}

function connectionOf({ local, remote }: TracedConnection): object {
  return { local_address: addressOf(local), remote_address: addressOf(remote) };
}

function addressOf(address: string): object {
  if (isInternalText(address))
    return {
      envoy_internal_address: { server_listener_name: internalNameOf(address), endpoint_id: endpointIdOf(address) },
    };
  const split = splitAddress(address);
  if (split === undefined) return { pipe: { path: address, mode: 0 } };
  const { host, port } = split;
  return {
    socket_address: { protocol: 'TCP', address: host, port_value: port, resolver_name: '', ipv4_compat: false },
  };
}
