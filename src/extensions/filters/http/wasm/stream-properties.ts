// The properties of a request that modules read (get_property): Envoy's attributes, and those that modules set.

import { type Attribute, attributeReader, type HeaderBlock, type StreamControl } from '../../../sdk.js';
import { Result } from '../../../wasm/abi.js';
import { attributeBytes } from '../../../wasm/contexts/property-values.js';

/** Properties of the filter state that a module has set. */
const PREFIX = 'wasm.';
/** Of one request. */
const MAX_SET = 256;
const MAX_VALUE_BYTES = 64 * 1024;
/** Paths may come from clients: few readers are kept. */
const MAX_READERS = 1024;

/** Groups and messages of attributes. */
const ROOTS = new Set([
  ...['request', 'response', 'source', 'destination', 'connection', 'upstream', 'xds'],
  ...['metadata', 'filter_state', 'upstream_filter_state'],
]);
const readers = new Map<string, Attribute>();

export class StreamProperties {
  /** The response's head, from its callback on. */
  response: HeaderBlock | undefined;
  readonly #stream: StreamControl;
  #set = 0;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  /** Returns undefined for what does not exist. */
  get(path: readonly string[]): Buffer | Result | undefined {
    const [root = '', ...fields] = path;
    if (fields.length > 0) return ROOTS.has(root) ? this.#attribute(path) : undefined;
    if (ROOTS.has(root)) return Result.SerializationFailure;
    if (root === 'connection_id') return this.#attribute(['connection', 'id']);
    const own = this.#stream.info.filterState?.get(PREFIX + root);
    return own && Buffer.from(own.text, 'latin1');
  }

  set(path: string, value: Buffer): Result {
    const state = this.#stream.info.ownFilterState();
    const name = PREFIX + path;
    const isNew = state.get(name) === undefined;
    if (value.length > MAX_VALUE_BYTES || (isNew && this.#set >= MAX_SET)) return Result.InternalFailure;
    const isSet = state.set(name, { text: value.toString('latin1'), isReadOnly: false, sharing: 'NONE' });
    if (!isSet) return Result.BadArgument;
    if (isNew) this.#set++;
    return Result.Ok;
  }

  #attribute(path: readonly string[]): Buffer | Result | undefined {
    const { info } = this.#stream;
    const { responseCode, responseHeaders } = info;
    // The stream has them when all filters have passed the head on, and the head not for as long as modules may read it.
    info.responseHeaders = this.response;
    if (responseCode === 0 && this.response !== undefined) info.responseCode = this.response.status;
    try {
      const value = readerOf(path)(info);
      return value === undefined ? undefined : (attributeBytes(value) ?? Result.SerializationFailure);
    } finally {
      info.responseHeaders = responseHeaders;
      info.responseCode = responseCode;
    }
  }
}

function readerOf(path: readonly string[]): Attribute {
  const key = path.join('\0');
  const known = readers.get(key);
  if (known !== undefined) return known;
  const reader = attributeReader(path);
  if (readers.size >= MAX_READERS) readers.clear();
  readers.set(key, reader);
  return reader;
}
