// A management server for tests, over gRPC: aggregated and per-service streams, state of the world and delta.
//
//   import { startControlPlane } from '../harness/control-plane.js';   // not in index.ts: it loads the schema and grpc-js
//   const plane = await startControlPlane(t);
//   plane.set('cluster', [{ name: 'a', connect_timeout: '1s', … }]);   // the complete set of clusters, in proto JSON; pushed to all streams
//   plane.set('endpoints', [{ cluster_name: 'a', endpoints: […] }]);
//   bootstrap({ …, clusters: [plane.cluster()], extra: plane.ads() })   // dynamic_resources with LDS and CDS over ADS
//   await plane.waitForAck('cluster');                                  // the latest version is acknowledged
//   const { error } = await plane.waitForNack('listener');              // or rejected, with this text
//
// `requests` records every request. Faults: `hold` delays responses, `sendBytes` and `respond` send arbitrary responses,
// `endStreams` ends streams, `stop` shuts the server down and `start` restarts it on the same port.

import { Server, ServerCredentials, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { RESOURCE_MESSAGES, type ResourceType } from '../../../src/xds/resource.js';
import { type Config, HTTP2_CLUSTER, staticCluster } from './bootstrap.js';
import type { Teardown } from './environment.js';
import { waitFor } from './wait-for.js';

const DISCOVERY = 'envoy.service.discovery.v3';
const RESOURCE = `${DISCOVERY}.Resource`;
const types = loadMessages(
  `${DISCOVERY}.DiscoveryRequest`,
  `${DISCOVERY}.DiscoveryResponse`,
  `${DISCOVERY}.DeltaDiscoveryRequest`,
  `${DISCOVERY}.DeltaDiscoveryResponse`,
  RESOURCE,
);

/** Name of the service, suffix of its methods. */
const SERVICES: { readonly [type in ResourceType]: readonly [string, string] } = {
  listener: ['envoy.service.listener.v3.ListenerDiscoveryService', 'Listeners'],
  cluster: ['envoy.service.cluster.v3.ClusterDiscoveryService', 'Clusters'],
  endpoints: ['envoy.service.endpoint.v3.EndpointDiscoveryService', 'Endpoints'],
  route: ['envoy.service.route.v3.RouteDiscoveryService', 'Routes'],
  'scoped-route': ['envoy.service.route.v3.ScopedRoutesDiscoveryService', 'ScopedRoutes'],
  'virtual-host': ['envoy.service.route.v3.VirtualHostDiscoveryService', 'VirtualHosts'],
  runtime: ['envoy.service.runtime.v3.RuntimeDiscoveryService', 'Runtime'],
  'extension-config': ['envoy.service.extension.v3.ExtensionConfigDiscoveryService', 'ExtensionConfigs'],
  secret: ['envoy.service.secret.v3.SecretDiscoveryService', 'Secrets'],
};
const AGGREGATED = `${DISCOVERY}.AggregatedDiscoveryService`;

export type XdsProtocol = 'sotw' | 'delta';

/** A request as it was received. */
export interface XdsRequest {
  /** Index of the stream, from 0. */
  readonly stream: number;
  readonly method: string;
  readonly type: ResourceType | undefined;
  readonly typeUrl: string;
  /** version_info; state of the world only. */
  readonly version: string;
  readonly nonce: string;
  /** resource_names, resource_names_subscribe. */
  readonly names: readonly string[];
  readonly unsubscribed: readonly string[];
  readonly initialVersions: { readonly [name: string]: string };
  /** undefined when the request has none. */
  readonly node: Config | undefined;
  readonly errorCode: number | undefined;
  /** error_detail.message; undefined for an ACK or a plain subscription. */
  readonly error: string | undefined;
}

/** How a resource is sent. */
export interface XdsResourceOptions {
  /** Time to live: `5s`. */
  readonly ttl?: string;
  readonly aliases?: readonly string[];
  /** Sends it wrapped in a Resource with state of the world too. */
  readonly wrapped?: boolean;
}

interface Kept extends XdsResourceOptions {
  readonly name: string;
  readonly version: string;
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface ControlPlaneOptions {
  readonly port?: number;
  /** Default: plaintext. */
  readonly credentials?: ServerCredentials;
}

export async function startControlPlane(t: Teardown, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const plane = new ControlPlane(options.credentials);
  await plane.start(options.port);
  t.teardown(() => plane.stop());
  return plane;
}

export class ControlPlane {
  readonly requests: XdsRequest[] = [];
  port = 0;
  readonly #credentials: ServerCredentials;
  #server: Server | undefined;
  #streams = new Set<Stream>();
  #streamCount = 0;
  #held: (() => void)[] | undefined;
  readonly #resources = new Map<string, { version: number; kept: ReadonlyMap<string, Kept> }>();

  constructor(credentials = ServerCredentials.createInsecure()) {
    this.#credentials = credentials;
  }

  /** Starts to serve, on the previous port or on one that the kernel chooses. */
  async start(port = this.port): Promise<void> {
    const server = new Server({ 'grpc.max_receive_message_length': -1 });
    for (const [service, suffix] of Object.values(SERVICES)) this.#serve(server, service, suffix);
    this.#serve(server, AGGREGATED, 'AggregatedResources');
    this.#server = server;
    this.port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, this.#credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
  }

  /** Breaks all connections and stops listening. */
  stop(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#streams.clear();
  }

  /** Open streams. */
  get streams(): number {
    return this.#streams.size;
  }

  /** Number of streams opened so far. */
  get streamCount(): number {
    return this.#streamCount;
  }

  /**
   * Replaces all resources of a type, in proto JSON, and pushes them to the open streams at once. Returns the version, which is
   * also the version of the resources that have changed.
   */
  set(type: ResourceType, resources: readonly Config[], options: XdsResourceOptions = {}): string {
    const before = this.#of(type);
    const version = before.version + 1;
    const kept = new Map<string, Kept>();
    for (const resource of resources) {
      const name = nameOf(type, resource);
      const value = encodeResource(RESOURCE_MESSAGES[type], resource);
      const known = before.kept.get(name);
      const isSame = known !== undefined && Buffer.compare(known.value, value) === 0 && known.ttl === options.ttl;
      const fresh = { ...options, name, version: `${version}`, typeUrl: urlOf(type), value };
      kept.set(name, isSame ? known : fresh);
    }
    this.#resources.set(type, { version, kept });
    for (const stream of this.#streams) stream.push(type);
    return `${version}`;
  }

  /** Adds or replaces one resource, and pushes it as set() does. Does not encode the others again. */
  change(type: ResourceType, resource: Config): void {
    const { kept, version } = this.#of(type);
    const name = nameOf(type, resource);
    const value = encodeResource(RESOURCE_MESSAGES[type], resource);
    const changed = { name, version: `${version + 1}`, typeUrl: urlOf(type), value };
    this.#resources.set(type, { version: version + 1, kept: new Map(kept).set(name, changed) });
    for (const stream of this.#streams) stream.push(type);
  }

  /** Holds responses until release(). */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const send of held) send();
  }

  /** Sends a response in proto JSON, with arbitrary contents, on all streams that subscribe to the type. */
  respond(type: ResourceType, protocol: XdsProtocol, response: Config): void {
    const message = protocol === 'sotw' ? `${DISCOVERY}.DiscoveryResponse` : `${DISCOVERY}.DeltaDiscoveryResponse`;
    this.sendBytes(type, encodeResource(message, response));
  }

  /** Sends arbitrary bytes. */
  sendBytes(type: ResourceType, bytes: Uint8Array): void {
    for (const stream of this.#streams) if (stream.subscribesTo(type)) stream.write(bytes);
  }

  /** Sends heartbeats: names of resources whose TTL is renewed, without the resources. */
  heartbeat(type: ResourceType, names: readonly string[], ttl: string): void {
    for (const stream of this.#streams) stream.heartbeat(type, names, ttl);
  }

  /** Ends all streams, with an error unless `code` is 0. */
  endStreams(code: number = status.UNAVAILABLE): void {
    for (const stream of this.#streams) stream.end(code);
  }

  /** Waits for a request that matches `isMeant`. */
  waitFor(what: string, isMeant: (request: XdsRequest) => boolean, deadlineMs?: number): Promise<XdsRequest> {
    const deadline = deadlineMs === undefined ? {} : { deadlineMs };
    return waitFor(() => this.requests.find(isMeant), { what, ...deadline });
  }

  /** Waits until the latest version of a type is acknowledged. */
  async waitForAck(type: ResourceType, version = `${this.#of(type).version}`): Promise<XdsRequest> {
    return this.waitFor(
      `version ${version} of ${type} acknowledged`,
      (request) => request.type === type && request.error === undefined && this.#sentAs(request) === version,
    );
  }

  /** Waits until the latest version of a type is rejected. */
  async waitForNack(type: ResourceType, version = `${this.#of(type).version}`): Promise<XdsRequest> {
    return this.waitFor(
      `version ${version} of ${type} rejected`,
      (request) => request.type === type && request.error !== undefined && this.#sentAs(request) === version,
    );
  }

  /** Returns a static cluster of this name that leads to this server. */
  cluster(name = 'control-plane', more: Config = {}): Config {
    return staticCluster(name, this.port, { ...HTTP2_CLUSTER, ...more });
  }

  /** Returns an ApiConfigSource that leads to this server. */
  api(protocol: XdsProtocol = 'sotw', more: Config = {}): Config {
    return {
      api_type: protocol === 'sotw' ? 'GRPC' : 'DELTA_GRPC',
      transport_api_version: 'V3',
      grpc_services: [{ envoy_grpc: { cluster_name: 'control-plane' } }],
      ...more,
    };
  }

  /** Returns a ConfigSource with a stream of its own. */
  source(protocol: XdsProtocol = 'sotw', more: Config = {}): Config {
    return { resource_api_version: 'V3', api_config_source: this.api(protocol), ...more };
  }

  /** Returns the part of a bootstrap that takes listeners and clusters from the aggregated stream. */
  ads(protocol: XdsProtocol = 'sotw', more: Config = {}): Config {
    const ads = { resource_api_version: 'V3', ads: {} };
    return {
      node: { id: 'test-node', cluster: 'test-cluster' },
      dynamic_resources: { ads_config: this.api(protocol), lds_config: ads, cds_config: ads, ...more },
    };
  }

  #of(type: string): { readonly version: number; readonly kept: ReadonlyMap<string, Kept> } {
    return this.#resources.get(type) ?? { version: 0, kept: new Map() };
  }

  /** Returns the version that a request responds to: nonces are `<version>/<count>`. */
  #sentAs({ nonce }: XdsRequest): string {
    return nonce.slice(0, nonce.indexOf('/'));
  }

  #serve(server: Server, service: string, suffix: string): void {
    const methods = [
      [`Stream${suffix}`, 'sotw'],
      [`Delta${suffix}`, 'delta'],
    ] as const;
    const definition = Object.fromEntries(
      methods.map(([method]) => [
        method,
        {
          path: `/${service}/${method}`,
          requestStream: true,
          responseStream: true,
          requestSerialize: (bytes: Buffer) => bytes,
          requestDeserialize: (bytes: Buffer) => bytes,
          responseSerialize: (bytes: Buffer) => bytes,
          responseDeserialize: (bytes: Buffer) => bytes,
        },
      ]),
    );
    const handlers = methods.map(([method, protocol]) => [
      method,
      (call: ServerDuplexStream<Buffer, Buffer>) => this.#accept(call, `/${service}/${method}`, protocol),
    ]);
    server.addService(definition, Object.fromEntries(handlers));
  }

  #accept(call: ServerDuplexStream<Buffer, Buffer>, method: string, protocol: XdsProtocol): void {
    const index = this.#streamCount++;
    const stream = new Stream(call, protocol, {
      kept: (type) => this.#of(type),
      send: (action) => {
        if (this.#held === undefined) action();
        else this.#held.push(action);
      },
    });
    this.#streams.add(stream);
    call.on('data', (bytes: Buffer) => {
      const request = decode(bytes, index, method, protocol);
      this.requests.push(request);
      stream.handle(request);
    });
    call.on('error', () => {});
    call.on('end', () => call.end());
    call.on('close', () => this.#streams.delete(stream));
    call.on('cancelled', () => this.#streams.delete(stream));
  }
}

interface StreamHost {
  kept(type: string): { readonly version: number; readonly kept: ReadonlyMap<string, Kept> };
  send(action: () => void): void;
}

/** The resources of one type that a stream has subscribed to, and those that it was sent. */
interface Asked {
  names: Set<string>;
  isWildcard: boolean;
  /** Versions by name that the client has or was sent. */
  sent: Map<string, string>;
}

class Stream {
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  readonly #protocol: XdsProtocol;
  readonly #host: StreamHost;
  readonly #asked = new Map<ResourceType, Asked>();
  #nonces = 0;

  constructor(call: ServerDuplexStream<Buffer, Buffer>, protocol: XdsProtocol, host: StreamHost) {
    this.#call = call;
    this.#protocol = protocol;
    this.#host = host;
  }

  subscribesTo(type: ResourceType): boolean {
    return this.#asked.has(type);
  }

  handle(request: XdsRequest): void {
    const { type } = request;
    if (type === undefined) return;
    const before = this.#asked.get(type);
    if (this.#protocol === 'delta') this.#handleDelta(type, request, before);
    else this.#handleState(type, request, before);
  }

  push(type: ResourceType): void {
    const asked = this.#asked.get(type);
    if (asked === undefined) return;
    if (this.#protocol === 'delta') this.#host.send(() => this.#sendDelta(type, asked, []));
    else this.#host.send(() => this.#sendState(type, asked));
  }

  heartbeat(type: ResourceType, names: readonly string[], ttl: string): void {
    if (!this.#asked.has(type)) return;
    const wrapped = names.map((name) => ({ name, version: this.#asked.get(type)!.sent.get(name) ?? '', ttl }));
    const nonce = this.#nonce(type);
    const head = { nonce, type_url: urlOf(type) };
    if (this.#protocol === 'delta') {
      this.write(
        encodeJson(types[`${DISCOVERY}.DeltaDiscoveryResponse`], {
          ...head,
          system_version_info: this.#version(type),
          resources: wrapped,
        }),
      );
      return;
    }
    const resources = wrapped.map((each) => ({
      type_url: `type.googleapis.com/${RESOURCE}`,
      value: encodeJson(types[RESOURCE], each),
    }));
    const message = types[`${DISCOVERY}.DiscoveryResponse`];
    this.write(message.encode({ ...head, version_info: this.#version(type), resources }).finish());
  }

  /** Writes nothing to an ended stream: while another write is pending, that would destroy it before the client sees its end. */
  write(bytes: Uint8Array): void {
    const { cancelled, destroyed, writableEnded } = this.#call;
    if (!destroyed && !cancelled && !writableEnded) this.#call.write(Buffer.from(bytes));
  }

  end(code: number): void {
    if (code === 0) this.#call.end();
    else this.#call.emit('error', { code, details: 'ended by the test' });
  }

  #handleState(type: ResourceType, request: XdsRequest, before: Asked | undefined): void {
    const { names, isWildcard } = before ?? { names: new Set<string>(), isWildcard: false };
    const asked = { names: new Set(request.names), isWildcard: false, sent: new Map<string, string>() };
    asked.isWildcard = request.names.includes('*') || (request.names.length === 0 && (!before || isWildcard));
    const isSame = names.size === asked.names.size && [...names].every((name) => asked.names.has(name));
    this.#asked.set(type, asked);
    if (before === undefined || !isSame) this.#host.send(() => this.#sendState(type, asked));
  }

  #sendState(type: ResourceType, asked: Asked): void {
    const { version, kept } = this.#host.kept(type);
    if (version === 0) return;
    const wanted = [...kept.values()].filter((each) => isWanted(asked, each));
    // Names that do not exist yet are left out of the response.
    if (wanted.length === 0 && !asked.isWildcard) return;
    const resources = wanted.map((each) => (each.wrapped || each.ttl ? wrap(each) : anyOf(each)));
    const response = { version_info: `${version}`, nonce: this.#nonce(type), type_url: urlOf(type), resources };
    const control_plane = { identifier: 'test-plane' };
    this.write(types[`${DISCOVERY}.DiscoveryResponse`].encode({ ...response, control_plane }).finish());
  }

  #handleDelta(type: ResourceType, request: XdsRequest, before: Asked | undefined): void {
    const asked: Asked = before ?? {
      names: new Set(),
      isWildcard: request.names.length === 0,
      sent: new Map(Object.entries(request.initialVersions)),
    };
    this.#asked.set(type, asked);
    for (const name of request.unsubscribed) {
      asked.names.delete(name);
      asked.sent.delete(name);
      if (name === '*') asked.isWildcard = false;
    }
    for (const name of request.names) {
      if (name === '*') asked.isWildcard = true;
      else asked.names.add(name);
    }
    if (before === undefined || request.names.length > 0) {
      this.#host.send(() => this.#sendDelta(type, asked, request.names, before === undefined));
    }
  }

  /** Sends what has changed. Newly subscribed names that do not exist are reported as removed. */
  #sendDelta(type: ResourceType, asked: Asked, names: readonly string[], isFirst = false): void {
    const { version, kept } = this.#host.kept(type);
    if (version === 0) return;
    const wanted = [...kept.values()].filter((each) => isWanted(asked, each));
    const fresh = wanted.filter((each) => asked.sent.get(each.name) !== each.version);
    const known = new Set([...kept.values()].flatMap(({ name, aliases = [] }) => [name, ...aliases]));
    const gone = [...asked.sent.keys()].filter((name) => !kept.has(name));
    const isMissing = (name: string) => !name.includes('*') && !known.has(name) && !gone.includes(name);
    const missing = names.filter(isMissing);
    for (const { name, version } of fresh) asked.sent.set(name, version);
    for (const name of gone) asked.sent.delete(name);
    if (fresh.length + gone.length + missing.length === 0 && !(isFirst && asked.isWildcard)) return;
    const message = types[`${DISCOVERY}.DeltaDiscoveryResponse`];
    this.write(
      message
        .encode({
          system_version_info: `${version}`,
          nonce: this.#nonce(type),
          type_url: urlOf(type),
          resources: fresh.map((each) => resourceOf(each)),
          removed_resources: [...gone, ...missing],
          control_plane: { identifier: 'test-plane' },
        })
        .finish(),
    );
  }

  #version(type: ResourceType): string {
    return `${this.#host.kept(type).version}`;
  }

  #nonce(type: ResourceType): string {
    return `${this.#version(type)}/${++this.#nonces}`;
  }
}

function isWanted({ names, isWildcard }: Asked, { name, aliases = [] }: Kept): boolean {
  if (isWildcard || names.has(name)) return true;
  return aliases.some((alias) => names.has(alias)) || (name.startsWith('xdstp:') && names.has(collectionOf(name)));
}

/** Returns the name of the glob collection that contains a resource. */
function collectionOf(name: string): string {
  const [path, query] = name.split('?');
  return `${path!.slice(0, path!.lastIndexOf('/'))}/*${query === undefined ? '' : `?${query}`}`;
}

function anyOf({ typeUrl, value }: Kept) {
  return { type_url: typeUrl, value };
}

function resourceOf(kept: Kept): object {
  const { name, version, aliases = [], ttl } = kept;
  return { name, version, aliases, resource: anyOf(kept), ...(ttl && { ttl: durationOf(ttl) }) };
}

function wrap(kept: Kept) {
  return { type_url: `type.googleapis.com/${RESOURCE}`, value: types[RESOURCE].encode(resourceOf(kept)).finish() };
}

function durationOf(text: string): object {
  const seconds = Number.parseFloat(text);
  return { seconds: Math.floor(seconds), nanos: Math.round((seconds % 1) * 1e9) };
}

/** Encodes a message in proto JSON, with the Anys that it contains. */
function encodeResource(message: string, json: Config): Uint8Array {
  const names = [...new Set([message, ...anyTypes(json)])];
  const key = names.join();
  let loaded = loadedOnce.get(key);
  if (loaded === undefined) {
    loaded = loadMessages(...names);
    loadedOnce.set(key, loaded);
  }
  return encodeJson(loaded[message]!, json);
}

const loadedOnce = new Map<string, ReturnType<typeof loadMessages>>();

function* anyTypes(value: unknown): Generator<string, void> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '@type' && typeof inner === 'string') yield inner.slice(inner.lastIndexOf('/') + 1);
    else yield* anyTypes(inner);
  }
}

function urlOf(type: ResourceType): string {
  return `type.googleapis.com/${RESOURCE_MESSAGES[type]}`;
}

function nameOf(type: ResourceType, resource: Config): string {
  return String(resource[type === 'endpoints' ? 'cluster_name' : 'name'] ?? '');
}

function decode(bytes: Buffer, stream: number, method: string, protocol: XdsProtocol): XdsRequest {
  const message = types[protocol === 'sotw' ? `${DISCOVERY}.DiscoveryRequest` : `${DISCOVERY}.DeltaDiscoveryRequest`];
  const request: Config = message.toObject(message.decode(bytes), { longs: Number, enums: String });
  const text = (name: string) => (request[name] as string | undefined) ?? '';
  const list = (name: string) => (request[name] as string[] | undefined) ?? [];
  const url = text('type_url');
  const found = Object.entries(RESOURCE_MESSAGES).find(([, name]) => url === `type.googleapis.com/${name}`);
  const error = request['error_detail'] as { readonly code?: number; readonly message?: string } | undefined;
  return {
    stream,
    method,
    type: found?.[0] as ResourceType | undefined,
    typeUrl: url,
    version: text('version_info'),
    nonce: text('response_nonce'),
    names: protocol === 'sotw' ? list('resource_names') : list('resource_names_subscribe'),
    unsubscribed: list('resource_names_unsubscribe'),
    initialVersions: (request['initial_resource_versions'] as XdsRequest['initialVersions'] | undefined) ?? {},
    node: request['node'] as Config | undefined,
    errorCode: error?.code,
    error: error === undefined ? undefined : (error.message ?? ''),
  };
}
