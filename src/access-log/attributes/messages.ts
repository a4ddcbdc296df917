// The messages that attributes have as values: Metadata, Locality and Node.

import { CelMessage, type CelValue, StructMap, valueOfJson } from '../../cel/values.js';
import { byteText } from '../../common/text/byte-text.js';
import type { Json, Locality, Metadata, Node, Struct } from '../../config/generated/api.js';
import { protoText } from './proto-text.js';

/** How a field is read from the JSON form; `absent`: its value if it is not set. */
interface FieldType {
  readonly absent: CelValue;
  readonly read: (value: Json) => CelValue;
}

export type Fields = { readonly [name: string]: FieldType };

/** A message in its JSON form, with names of fields as in the .proto file. */
class JsonMessage extends CelMessage {
  readonly json: Struct;
  readonly #fields: Fields;

  constructor(json: Struct, fields: Fields) {
    super();
    this.json = json;
    this.#fields = fields;
  }

  get text(): string {
    return byteText(protoText(this.json));
  }

  get(field: string): CelValue | undefined {
    if (!Object.hasOwn(this.#fields, field)) return undefined;
    const { absent, read } = this.#fields[field]!;
    const value = Object.hasOwn(this.json, field) ? this.json[field] : undefined;
    return value === undefined ? absent : read(value);
  }

  has(field: string): boolean | undefined {
    if (!Object.hasOwn(this.#fields, field)) return undefined;
    const value = Object.hasOwn(this.json, field) ? this.json[field] : undefined;
    return value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);
  }
}

const TEXT: FieldType = { absent: '', read: valueOfJson };
const STRUCT: FieldType = { absent: new StructMap({}), read: (value) => new StructMap(value as Struct) };
const LIST: FieldType = { absent: [], read: valueOfJson };

function message(fields: Fields): FieldType {
  return {
    absent: new JsonMessage({}, fields),
    read: (value) => new JsonMessage(value as Struct, fields),
  };
}

const METADATA: Fields = { filter_metadata: STRUCT, typed_filter_metadata: STRUCT };
const LOCALITY: Fields = { region: TEXT, zone: TEXT, sub_zone: TEXT };
const VERSION: Fields = {
  major_number: { absent: 0n, read: integer },
  minor_number: { absent: 0n, read: integer },
  patch: { absent: 0n, read: integer },
};
const NODE: Fields = {
  id: TEXT,
  cluster: TEXT,
  metadata: STRUCT,
  dynamic_parameters: STRUCT,
  locality: message(LOCALITY),
  user_agent_name: TEXT,
  user_agent_version: TEXT,
  user_agent_build_version: message({ version: message(VERSION), metadata: STRUCT }),
  extensions: LIST,
  client_features: LIST,
  listening_addresses: LIST,
};

function integer(value: Json): CelValue {
  return BigInt(value as number);
}

/** An envoy.config.core.v3.Metadata; undefined: an empty one. */
export function metadataMessage(metadata: Metadata | undefined): CelMessage {
  return metadata === undefined ? EMPTY : new JsonMessage(metadata as unknown as Struct, METADATA);
}

const EMPTY = new JsonMessage({}, METADATA);

export function localityMessage(locality: Locality): CelMessage {
  return new JsonMessage(locality as unknown as Struct, LOCALITY);
}

export function nodeMessage(node: Node): CelMessage {
  return new JsonMessage(node as unknown as Struct, NODE);
}
