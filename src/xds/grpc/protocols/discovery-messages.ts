// Encodes and decodes DiscoveryRequest, DiscoveryResponse and their delta forms in protobuf's binary form, field by field: the
// schema is large, and nothing else here needs it.

import protobuf from 'protobufjs/minimal.js';
import type { EncodedResource } from '../../resource-reader.js';

/** A resource of a response. */
export interface SentResource extends Omit<EncodedResource, 'value'> {
  /** undefined: a heartbeat, which restarts the TTL, or a virtual host that does not exist. */
  readonly value: Uint8Array | undefined;
  /** TTL in ms; undefined: none. */
  readonly ttlMs: number | undefined;
}

/** Returns whether the resource has a body. Otherwise it is a heartbeat, or reports that a virtual host does not exist. */
export function hasBody(resource: SentResource): resource is SentResource & EncodedResource {
  return resource.value !== undefined;
}

/** A response of either protocol. */
export interface Response {
  readonly version: string;
  readonly typeUrl: string;
  readonly nonce: string;
  /** Identifier of the control plane; undefined when not sent. */
  readonly identifier: string | undefined;
  readonly resources: readonly SentResource[];
  /** Names of removed resources; only in delta. */
  readonly removed: readonly string[];
}

export interface StateRequest {
  readonly node: Uint8Array | undefined;
  readonly version: string;
  readonly names: readonly string[];
  readonly typeUrl: string;
  readonly nonce: string;
  /** Why the last response was refused. */
  readonly error: string | undefined;
}

export interface DeltaRequest {
  readonly node: Uint8Array | undefined;
  readonly typeUrl: string;
  readonly subscribe: Iterable<string>;
  readonly unsubscribe: Iterable<string>;
  readonly initialVersions: Iterable<readonly [name: string, version: string]>;
  readonly nonce: string;
  readonly error: string | undefined;
}

const WRAPPER = 'type.googleapis.com/envoy.service.discovery.v3.Resource';
/** google.rpc.Code of a NACK. */
const INTERNAL = 13;

/** Number of fields that are read per step, which takes a few milliseconds. */
const FIELDS_PER_STEP = 8192;

/** Wire types. */
const VARINT = 0;
const DELIMITED = 2;

type Writer = protobuf.Writer;
type Reader = protobuf.Reader;

export function encodeStateRequest(request: StateRequest): Uint8Array {
  const writer = protobuf.Writer.create();
  text(writer, 1, request.version);
  if (request.node !== undefined) writer.uint32(tag(2)).bytes(request.node);
  for (const name of request.names) writer.uint32(tag(3)).string(name);
  text(writer, 4, request.typeUrl);
  text(writer, 5, request.nonce);
  errorDetail(writer, 6, request.error);
  return writer.finish();
}

export function encodeDeltaRequest(request: DeltaRequest): Uint8Array {
  const writer = protobuf.Writer.create();
  if (request.node !== undefined) writer.uint32(tag(1)).bytes(request.node);
  text(writer, 2, request.typeUrl);
  for (const name of request.subscribe) writer.uint32(tag(3)).string(name);
  for (const name of request.unsubscribe) writer.uint32(tag(4)).string(name);
  for (const [name, version] of request.initialVersions) {
    writer.uint32(tag(5)).fork().uint32(tag(1)).string(name).uint32(tag(2)).string(version).ldelim();
  }
  text(writer, 6, request.nonce);
  errorDetail(writer, 7, request.error);
  return writer.finish();
}

/** Returns the encoded node with additional client_features. */
export function withClientFeatures(node: Uint8Array, features: readonly string[]): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const feature of features) writer.uint32(tag(10)).string(feature);
  return Buffer.concat([node, writer.finish()]);
}

/** Reads a DiscoveryResponse, FIELDS_PER_STEP fields per step. Throws if the bytes cannot be decoded. */
export function* decodeStateResponse(bytes: Uint8Array): Generator<void, Response> {
  const response = { ...EMPTY, resources: [] as SentResource[] };
  yield* fieldsInSteps(protobuf.Reader.create(bytes), (field, reader) => {
    if (field === 1) response.version = reader.string();
    else if (field === 2) response.resources.push(unwrapped(readAny(reader)));
    else if (field === 4) response.typeUrl = reader.string();
    else if (field === 5) response.nonce = reader.string();
    else if (field === 6) response.identifier = firstText(reader);
    else return false;
    return true;
  });
  return response;
}

/** Reads a DeltaDiscoveryResponse, FIELDS_PER_STEP fields per step. Throws if the bytes cannot be decoded. */
export function* decodeDeltaResponse(bytes: Uint8Array): Generator<void, Response> {
  const response = { ...EMPTY, resources: [] as SentResource[], removed: [] as string[] };
  yield* fieldsInSteps(protobuf.Reader.create(bytes), (field, reader) => {
    if (field === 1) response.version = reader.string();
    else if (field === 2) response.resources.push(readResource(inner(reader)));
    else if (field === 4) response.typeUrl = reader.string();
    else if (field === 5) response.nonce = reader.string();
    else if (field === 6) response.removed.push(reader.string());
    else if (field === 7) response.identifier = firstText(reader);
    else if (field === 8) response.removed.push(firstText(reader));
    else return false;
    return true;
  });
  return response;
}

interface Any {
  typeUrl: string;
  value: Uint8Array;
}

const EMPTY = {
  version: '',
  typeUrl: '',
  nonce: '',
  identifier: undefined as string | undefined,
  removed: [] as string[],
};

function unwrapped({ typeUrl, value }: Any): SentResource {
  if (typeUrl === WRAPPER) {
    try {
      return readResource(protobuf.Reader.create(value));
    } catch {
      // The resource reader refuses it, and not the other resources of the response.
    }
  }
  return { name: '', version: '', aliases: [], typeUrl, value, ttlMs: undefined };
}

/** envoy.service.discovery.v3.Resource */
function readResource(reader: Reader): SentResource {
  const aliases: string[] = [];
  let name = '';
  let version = '';
  let ttlMs: number | undefined;
  let resource: Any | undefined;
  eachField(reader, (field, reader) => {
    if (field === 1) version = reader.string();
    else if (field === 2) resource = readAny(reader);
    else if (field === 3) name = reader.string();
    else if (field === 4) aliases.push(reader.string());
    else if (field === 6) ttlMs = durationIn(reader);
    else if (field === 8) name ||= firstText(reader);
    else return false;
    return true;
  });
  return { name, version, aliases, typeUrl: resource?.typeUrl ?? '', value: resource?.value, ttlMs };
}

function readAny(outer: Reader): Any {
  const any: Any = { typeUrl: '', value: NOTHING };
  eachField(inner(outer), (field, reader) => {
    if (field === 1) any.typeUrl = reader.string();
    else if (field === 2) any.value = reader.bytes();
    else return false;
    return true;
  });
  return any;
}

const NOTHING = new Uint8Array(0);

/** Returns a google.protobuf.Duration in ms. */
function durationIn(outer: Reader): number {
  let ms = 0;
  const read = (field: number, reader: Reader) => {
    if (field === 1) ms += Number(reader.int64()) * 1000;
    else if (field === 2) ms += reader.int32() / 1e6;
    else return false;
    return true;
  };
  eachField(inner(outer), read, VARINT);
  return ms;
}

/** Returns a message's first field, a string: ControlPlane.identifier, ResourceName.name. */
function firstText(outer: Reader): string {
  let name = '';
  eachField(inner(outer), (field, reader) => {
    if (field !== 1) return false;
    name = reader.string();
    return true;
  });
  return name;
}

/** Reads the next field of a message, and returns false for an unknown one. */
type FieldReader = (field: number, reader: Reader) => boolean;

/** Reads a message. Calls `read` for the fields with the wire type. */
function eachField(reader: Reader, read: FieldReader, wireType = DELIMITED): void {
  while (reader.pos < reader.len) readField(reader, read, wireType);
}

function* fieldsInSteps(reader: Reader, read: FieldReader): Generator<void, void> {
  for (let fields = 1; reader.pos < reader.len; fields++) {
    readField(reader, read, DELIMITED);
    if (fields % FIELDS_PER_STEP === 0) yield;
  }
}

function readField(reader: Reader, read: FieldReader, wireType: number): void {
  const key = reader.uint32();
  if (key >>> 3 === 0) throw new Error('a field has the number 0');
  if ((key & 7) !== wireType || !read(key >>> 3, reader)) reader.skipType(key & 7);
}

/** Returns a reader of the next embedded message. */
function inner(reader: Reader): Reader {
  return protobuf.Reader.create(reader.bytes());
}

function tag(field: number): number {
  return field * 8 + DELIMITED;
}

function text(writer: Writer, field: number, value: string): void {
  if (value !== '') writer.uint32(tag(field)).string(value);
}

/** google.rpc.Status */
function errorDetail(writer: Writer, field: number, error: string | undefined): void {
  if (error === undefined) return;
  writer.uint32(tag(field)).fork().uint32(8).int32(INTERNAL).uint32(tag(2)).string(error).ldelim();
}
