// Envoy's attributes: the values of a stream that expressions, external processors and Wasm modules read, by paths such as
// request.headers['x-id'].

import { compileExpression, type Evaluate, type Vocabulary } from '../../cel/compile.js';
import type { Expression } from '../../cel/expression.js';
import type { FunctionTable } from '../../cel/functions/function-table.js';
import { CelMap, CelMessage, type CelValue } from '../../cel/values.js';
import { byteText } from '../../common/text/byte-text.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { type HeaderReader, headerReader } from './header-map.js';
import {
  type Attribute,
  type Attributes,
  CONNECTION,
  DESTINATION,
  REQUEST,
  RESPONSE,
  SOURCE,
} from './request-attributes.js';
import { FilterStateMap, streamMetadata, UPSTREAM, XDS } from './xds-attributes.js';

const GROUPS: { readonly [name: string]: Attributes } = {
  request: REQUEST,
  response: RESPONSE,
  source: SOURCE,
  destination: DESTINATION,
  connection: CONNECTION,
  upstream: UPSTREAM,
  xds: XDS,
};

/** Variables that are no groups. */
const SINGLE: Attributes = {
  metadata: streamMetadata,
  filter_state: (info) => new FilterStateMap(info, false),
  upstream_filter_state: (info) => (info.upstreamConnectionId === 0 ? undefined : new FilterStateMap(info, true)),
};

const HEADS: { readonly [name: string]: (info: StreamInfo) => Parameters<HeaderReader>[0] | undefined } = {
  'request.headers': (info) => info.requestHeaders,
  'response.headers': (info) => info.responseHeaders,
  'response.trailers': (info) => info.responseTrailers,
};

/** The variables of expressions about streams. */
export const STREAM_VOCABULARY: Vocabulary<StreamInfo> = {
  reader([root = '', name, field]) {
    if (name === undefined) return Object.hasOwn(SINGLE, root) ? SINGLE[root] : groupReader(root);
    const attributes = Object.hasOwn(GROUPS, root) ? GROUPS[root]! : undefined;
    if (field === undefined) return attributes && Object.hasOwn(attributes, name) ? attributes[name] : undefined;
    const headOf = HEADS[`${root}.${name}`];
    return headOf && fieldReader(headOf, headerReader(byteText(field)));
  },
};

function fieldReader(
  headOf: (info: StreamInfo) => Parameters<HeaderReader>[0] | undefined,
  read: HeaderReader,
): Attribute {
  return (info) => {
    const head = headOf(info);
    return head && read(head, info.scheme);
  };
}

function groupReader(root: string): Attribute | undefined {
  if (!Object.hasOwn(GROUPS, root)) return undefined;
  const attributes = GROUPS[root]!;
  return (info) => new AttributeMap(attributes, info);
}

/** A group as a value, for expressions such as has(request.size) and request['path']. As in Envoy, it cannot be listed. */
class AttributeMap extends CelMap {
  readonly size = 0;
  readonly #attributes: Attributes;
  readonly #info: StreamInfo;

  constructor(attributes: Attributes, info: StreamInfo) {
    super();
    this.#attributes = attributes;
    this.#info = info;
  }

  get(key: CelValue): CelValue | undefined {
    return typeof key === 'string' && Object.hasOwn(this.#attributes, key)
      ? this.#attributes[key]!(this.#info)
      : undefined;
  }

  has(key: CelValue): boolean {
    return this.get(key) !== undefined;
  }

  entries(): undefined {}
}

/**
 * Returns the reader of the attribute at a path, for example ['request', 'path'], ['request', 'headers', 'x-id'] or ['metadata',
 * 'filter_metadata', 'ns', 'key']. The reader returns undefined where the stream has no such value, or not yet.
 */
export function attributeReader(path: readonly string[]): Attribute {
  for (let length = Math.min(path.length, 3); length > 0; length--) {
    const read = STREAM_VOCABULARY.reader(path.slice(0, length));
    if (read !== undefined) return within(read, path.slice(length));
  }
  return () => undefined;
}

function within(read: Attribute, fields: readonly string[]): Attribute {
  if (fields.length === 0) return read;
  return (info) => {
    let value = read(info);
    for (const field of fields) {
      if (value instanceof CelMap) value = value.get(byteText(field));
      else if (value instanceof CelMessage) value = value.get(field);
      else return undefined;
    }
    return value;
  };
}

/** Compiles an expression about streams. Throws a BatonError if it has an unknown function or an invalid pattern. */
export function compileStreamExpression(expression: Expression, functions: FunctionTable): Evaluate<StreamInfo> {
  return compileExpression(expression, STREAM_VOCABULARY, functions);
}
