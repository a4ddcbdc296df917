// Checks that a JSON answer is the proto JSON of a message of envoy.admin.v3.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import type { Test } from 'tap';
import { schemaPath } from '../../src/config/schema/schema.js';

const require = createRequire(import.meta.url);
const protobuf = require('protobufjs/light.js') as typeof protobufjs;
const protojson = require('protobufjs/ext/protojson.js') as typeof ProtoJson;
const root = protobuf.Root.fromJSON(JSON.parse(readFileSync(schemaPath(), 'utf8')));

/** Asserts that `json` reads as the message, survives the binary form, and has no field that the message lacks. */
export function decodesAs(t: Test, message: string, json: unknown): void {
  const type = root.lookupType(`envoy.admin.v3.${message}`);
  const decoded = protojson.fromJson(type, json as never);
  const again = type.decode(type.encode(decoded).finish());
  t.same(protojson.toJson(type, again), protojson.toJson(type, decoded), `decodes as ${message}`);
}
