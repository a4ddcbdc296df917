// JSON of admin endpoints: proto field names, one space of indentation, and lists of any length that are produced while they
// are sent.

import { type Address, AddressKind, endpointIdOf, internalNameOf } from '../io/addresses/address.js';

export const JSON_TYPE = 'application/json';

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject | undefined;
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/**
 * A list whose elements are created while they are printed: a long list takes no memory while an answer waits for its
 * client.
 */
export class LazyList {
  readonly #elements: () => Iterable<JsonValue>;

  constructor(elements: () => Iterable<JsonValue>) {
    this.#elements = elements;
  }

  [Symbol.iterator](): Iterator<JsonValue> {
    return this.#elements()[Symbol.iterator]();
  }
}

/** An element of a list as texts; undefined for a skipped one, which may have taken a while. */
export type Element = Iterable<string> | undefined;

/** Renders a value whose first line is indented by `depth` spaces. */
export function prettyJson(value: JsonValue, depth = 0): string {
  return JSON.stringify(value, null, 1).replaceAll('\n', `\n${' '.repeat(depth)}`);
}

/**
 * Renders a message with `fields` and then a list, whose elements are texts indented by `depth` + 2 spaces. A list without
 * elements is omitted, as fields with default values are. Yields an empty text for each skipped element.
 */
export function* prettyList(
  fields: JsonObject,
  list: string,
  elements: Iterable<Element>,
  depth = 0,
): Generator<string, void> {
  const indent = ' '.repeat(depth);
  const head = prettyJson(fields, depth);
  let isOpen = false;
  for (const element of elements) {
    if (element === undefined) {
      yield '';
      continue;
    }
    if (isOpen) yield ',\n';
    else yield `${head === '{}' ? '{' : `${head.slice(0, -`\n${indent}}`.length)},`}\n${indent} "${list}": [\n`;
    isOpen = true;
    yield `${indent}  `;
    yield* element;
  }
  yield isOpen ? `\n${indent} ]\n${indent}}` : head;
}

/** envoy.config.core.v3.Address */
export function addressJson(address: Address): JsonObject {
  if (address.kind === AddressKind.Unix) return { pipe: { path: address.path } };
  if (address.kind === AddressKind.Internal) {
    const endpoint = endpointIdOf(address.path);
    const id = endpoint === '' ? {} : { endpoint_id: endpoint };
    return { envoy_internal_address: { server_listener_name: internalNameOf(address.path), ...id } };
  }
  return { socket_address: { address: address.ip, port_value: address.port } };
}
