// The objects of scripts of cluster specifiers: the handle, the head of the request, and clusters.

import { HeadKind, LuaHeaders } from '../../filters/http/lua/objects/headers.js';
import { LOGS } from '../../filters/http/lua/objects/logs.js';
import { OUT_OF_SCOPE } from '../../filters/http/lua/objects/scope.js';
import {
  type Cluster,
  type ClusterManager,
  type HeaderBlock,
  LimitKind,
  LuaError,
  type LuaMethod,
  Priority,
} from '../../sdk.js';

const enum RouteClass {
  Handle = 0,
  Headers = 1,
  Cluster = 2,
  Result = 3,
}

/** A handle and its objects are usable until end(): a script may keep them. */
export class RouteHandle {
  #headers: RouteHeaders | undefined;
  #clusters: ClusterManager | undefined;
  /** Of getCluster(). */
  readonly #found: RouteCluster[] = [];

  constructor(headers: HeaderBlock, clusters: ClusterManager) {
    this.#headers = new RouteHeaders(headers);
    this.#clusters = clusters;
  }

  get lua(): RouteClass {
    return RouteClass.Handle;
  }

  end(): void {
    this.#headers?.end();
    for (const cluster of this.#found) cluster.end();
    this.#headers = undefined;
    this.#clusters = undefined;
  }

  headers(): RouteHeaders {
    return live(this.#headers);
  }

  /** `name`: one character per byte. Returns undefined if there is no such cluster. */
  getCluster(name: string): RouteCluster | undefined {
    const cluster = live(this.#clusters).find(Buffer.from(name, 'latin1').toString())?.current;
    if (cluster === undefined) return undefined;
    const found = new RouteCluster(cluster);
    this.#found.push(found);
    return found;
  }
}

class RouteHeaders {
  readonly #headers: LuaHeaders;

  constructor(block: HeaderBlock) {
    this.#headers = new LuaHeaders(block, HeadKind.Request, FIXED);
  }

  get lua(): RouteClass {
    return RouteClass.Headers;
  }

  end(): void {
    this.#headers.end();
  }

  get(name: string): string | undefined {
    return this.#headers.get(name);
  }
}

const FIXED = { canChange: false, changed: () => {} };

/** The current use of a cluster by all workers. */
class RouteCluster {
  #cluster: Cluster | undefined;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get lua(): RouteClass {
    return RouteClass.Cluster;
  }

  end(): void {
    this.#cluster = undefined;
  }

  numConnections(): number {
    return this.#count(LimitKind.Connections);
  }

  numRequests(): number {
    return this.#count(LimitKind.Requests);
  }

  numPendingRequests(): number {
    return this.#count(LimitKind.PendingRequests);
  }

  #count(kind: LimitKind): number {
    const { limits } = live(this.#cluster);
    return limits.current(kind, Priority.Default) + limits.current(kind, Priority.High);
  }
}

/** Receives what envoy_on_route has returned. */
export class RouteResult {
  /** Undefined: nothing, or nil. */
  value: unknown;

  get lua(): RouteClass {
    return RouteClass.Result;
  }

  set(value: unknown): void {
    this.value = value;
  }
}

function live<T>(object: T | undefined): T {
  if (object === undefined) throw new LuaError(OUT_OF_SCOPE);
  return object;
}

const HANDLE: readonly LuaMethod[] = [
  ['headers', '', RouteHandle.prototype.headers],
  ['getCluster', 's', RouteHandle.prototype.getCluster],
];
const HEADERS: readonly LuaMethod[] = [['get', 's', RouteHeaders.prototype.get]];
const CLUSTER: readonly LuaMethod[] = [
  ['numConnections', '', RouteCluster.prototype.numConnections],
  ['numRequests', '', RouteCluster.prototype.numRequests],
  ['numPendingRequests', '', RouteCluster.prototype.numPendingRequests],
];
const RESULT: readonly LuaMethod[] = [['set', 'a', RouteResult.prototype.set]];

/** The methods of the classes, in the order of RouteClass. */
export const ROUTE_API: readonly (readonly LuaMethod[])[] = [
  ...[HANDLE, HEADERS, CLUSTER].map((methods) => [...methods, ...LOGS]),
  RESULT,
];
