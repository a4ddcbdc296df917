// Checks that a JSON answer is the proto JSON of a message of envoy.admin.v3.

import { createRequire } from 'node:module';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type { Test } from 'tap';
import { loadAllMessages } from '../../src/config/schema/messages.js';

const require = createRequire(import.meta.url);
const protojson = require('protobufjs/ext/protojson.js') as typeof ProtoJson;
const root = loadAllMessages();

/** Asserts that `json` parses as the message, survives the binary form, and has no unknown field. */
export function decodesAs(t: Test, message: string, json: unknown): void {
  const type = root.lookupType(`envoy.admin.v3.${message}`);
  const decoded = protojson.fromJson(type, json as never);
  const again = type.decode(type.encode(decoded).finish());
  t.same(protojson.toJson(type, again), protojson.toJson(type, decoded), `decodes as ${message}`);
}
