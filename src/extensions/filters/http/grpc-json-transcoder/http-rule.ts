// The google.api.http option of a method (google/api/http.proto), in binary form.

import { WireReader, WireType } from '../../../protobuf/wire-reader.js';

export interface HttpBinding {
  /** The method in upper case; `*` for all. */
  readonly method: string;
  readonly template: string;
  /** Path of the field that the body is; `*`: the whole message; empty: none. */
  readonly body: string;
  readonly responseBody: string;
}

/** Bindings within bindings: additional ones have no more of them, but they may be written. */
const MAX_DEPTH = 8;

/** Fields of HttpRule that are a pattern. */
const METHODS: { readonly [field: number]: string } = { 2: 'GET', 3: 'PUT', 4: 'POST', 5: 'DELETE', 6: 'PATCH' };

/**
 * Returns the binding of a rule, and its additional ones. A rule without a pattern has none of its own.
 * @throws WireError
 */
export function readHttpRule(rule: Buffer): HttpBinding[] {
  const bindings: HttpBinding[] = [];
  readRule(new WireReader(rule), bindings, 0);
  return bindings;
}

function readRule(reader: WireReader, bindings: HttpBinding[], depth: number): void {
  let method = '';
  let template = '';
  let body = '';
  let responseBody = '';
  const additional: WireReader[] = [];
  while (reader.next()) {
    if (reader.wireType !== WireType.Bytes) reader.skip();
    else if (METHODS[reader.field] !== undefined) {
      method = METHODS[reader.field]!;
      template = reader.text();
    } else if (reader.field === 7) body = reader.text();
    else if (reader.field === 8) [method, template] = readCustom(reader.inner());
    else if (reader.field === 11) additional.push(reader.inner());
    else if (reader.field === 12) responseBody = reader.text();
    else reader.skip();
  }
  if (method !== '') bindings.push({ method, template, body, responseBody });
  if (depth >= MAX_DEPTH) return;
  for (const inner of additional) readRule(inner, bindings, depth + 1);
}

function readCustom(reader: WireReader): [kind: string, path: string] {
  let kind = '';
  let path = '';
  while (reader.next()) {
    if (reader.wireType !== WireType.Bytes) reader.skip();
    else if (reader.field === 1) kind = reader.text();
    else if (reader.field === 2) path = reader.text();
    else reader.skip();
  }
  return [kind, path];
}
