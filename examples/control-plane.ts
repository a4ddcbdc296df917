// A management server: sends the content of a YAML file to proxies by aggregated discovery, and again whenever the file changes. With
// delta discovery it sends what a proxy requests by name, once.
//
//   node dist/examples/control-plane.js examples/dynamic/resources.yaml [port]

import { readFileSync, watchFile } from 'node:fs';
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { parse } from 'yaml';
import { encodeJson, loadMessages } from '../src/config/schema/messages.js';

const REQUEST = 'envoy.service.discovery.v3.DiscoveryRequest';
const RESPONSE = 'envoy.service.discovery.v3.DiscoveryResponse';
const DELTA_REQUEST = 'envoy.service.discovery.v3.DeltaDiscoveryRequest';
const DELTA_RESPONSE = 'envoy.service.discovery.v3.DeltaDiscoveryResponse';
const types = loadMessages(REQUEST, RESPONSE, DELTA_REQUEST, DELTA_RESPONSE);
type Request = { type_url: string; version_info: string; error_detail: { message: string } | null };
type DeltaRequest = Pick<Request, 'type_url'> & { resource_names_subscribe: string[] };
type Stream = ServerDuplexStream<Request, object>;

const [file = 'examples/dynamic/resources.yaml', port = '18000'] = process.argv.slice(2);
const streams = new Map<Stream, Set<string>>();
let version = 0;
let resources: { readonly name: string; readonly type_url: string; readonly value: Uint8Array }[] = [];

function load(): void {
  const text = readFileSync(file, 'utf8');
  const known = loadMessages(...Array.from(text.matchAll(/type\.googleapis\.com\/([\w.]+)/g), ([, name]) => name!));
  resources = (parse(text) as { '@type': string; [field: string]: string }[]).map(
    ({ '@type': type_url, ...resource }) => {
      const name = resource['name'] ?? resource['cluster_name'] ?? '';
      return { name, type_url, value: encodeJson(known[type_url.split('/')[1]!]!, resource) };
    },
  );
  console.log(`version ${++version}: ${resources.length} resources`);
  for (const [stream, asked] of streams) for (const type of asked) send(stream, type);
}

function send(stream: Stream, type_url: string): void {
  const ofType = resources.filter((resource) => resource.type_url === type_url);
  stream.write({ type_url, version_info: `${version}`, nonce: `${Date.now()}`, resources: ofType });
}

function serve(stream: Stream): void {
  const asked = new Set<string>();
  streams.set(stream, asked);
  stream.on('data', ({ type_url, version_info, error_detail: error }: Request) => {
    console.log(`${type_url}: ${error ? `refused: ${error.message}` : `runs version '${version_info}'`}`);
    // The first request subscribes; later ones acknowledge or refuse a response.
    if (!asked.has(type_url)) send(stream, type_url);
    asked.add(type_url);
  });
  stream.on('end', () => stream.end()).on('error', () => stream.destroy());
  stream.on('close', () => streams.delete(stream));
}

/** Answers requests by name; a resource that does not exist counts as removed. */
function serveDelta(stream: ServerDuplexStream<DeltaRequest, object>): void {
  stream.on('data', ({ type_url, resource_names_subscribe: names }: DeltaRequest) => {
    if (names.length === 0) return;
    console.log(`${type_url}: requested ${names.join(', ')}`);
    const found = resources.filter((each) => each.type_url === type_url && names.includes(each.name));
    stream.write({
      ...{ type_url, nonce: `${Date.now()}` },
      resources: found.map(({ name, ...resource }) => ({ name, version: `${version}`, resource })),
      removed_resources: names.filter((name) => !found.some((each) => each.name === name)),
    });
  });
  stream.on('end', () => stream.end()).on('error', () => stream.destroy());
}

function method(name: string, request: keyof typeof types, response: keyof typeof types) {
  const encode = (message: object) => Buffer.from(types[response].encode(message).finish());
  const decode = (bytes: Buffer) => types[request].decode(bytes) as unknown as Request & DeltaRequest;
  return {
    path: `/envoy.service.discovery.v3.AggregatedDiscoveryService/${name}AggregatedResources`,
    ...{ requestStream: true, responseStream: true },
    ...{ requestDeserialize: decode, responseSerialize: encode, requestSerialize: encode, responseDeserialize: decode },
  };
}

load();
watchFile(file, { interval: 200 }, () => {
  try {
    load();
  } catch (error) {
    console.error(`${file} is as it was for proxies: ${error}`);
  }
});
const server = new Server();
const service = {
  stream: method('Stream', REQUEST, RESPONSE),
  delta: method('Delta', DELTA_REQUEST, DELTA_RESPONSE),
};
server.addService(service, { stream: serve, delta: serveDelta });
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  console.log(`serving ${file} at 127.0.0.1:${port}`);
});
