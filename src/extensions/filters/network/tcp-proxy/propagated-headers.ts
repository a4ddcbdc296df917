// The filter state by which a tunnel passes on the head or the trailers of its response.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { ProtobufWriter } from '../../../../common/protobuf-writer.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';

const TYPE_URL = 'type.googleapis.com/envoy.config.core.v3.HeaderMap';

/** Fields of envoy.config.core.v3.HeaderMap and HeaderValue. */
const HEADERS = 1;
const KEY = 1;
const VALUE = 2;

/** Sets the filter state `envoy.tcp_proxy.propagate_response_…`. */
export function propagate(section: 'headers' | 'trailers', fields: HeaderBlock, info: StreamInfo): void {
  const headers: { key: string; value: string }[] = [];
  if (section === 'headers') headers.push({ key: ':status', value: String(fields.status) });
  for (let i = 0; i < fields.size; i++)
    if (fields.id(i) >= 0) headers.push({ key: fields.name(i).toLowerCase(), value: fields.value(i) });
  info.ownFilterState().set(`envoy.tcp_proxy.propagate_response_${section}`, {
    text: '',
    json: JSON.stringify({ headers }),
    message: { typeUrl: TYPE_URL, encoded: encode(headers) },
    isReadOnly: false,
    sharing: 'NONE',
  });
}

function encode(headers: readonly { key: string; value: string }[]): Uint8Array {
  const map = new ProtobufWriter();
  const field = new ProtobufWriter();
  for (const { key, value } of headers) {
    field.clear();
    field.string(KEY, key);
    field.string(VALUE, value);
    map.message(HEADERS, field);
  }
  return map.copy();
}
