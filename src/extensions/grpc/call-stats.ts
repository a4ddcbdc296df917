// Stats of gRPC calls in the scope of their cluster: `cluster.<name>.grpc.<service>.<method>.success` and the like.

import type { Cluster, DynamicCounter, DynamicHistogram, HeaderBlock } from '../sdk.js';

/** Methods of a cluster that one worker counts by name. Clients choose the names, and a name is never freed. */
const MAX_METHODS = 1000;
/** Longer names are not counted by name. */
const MAX_NAME_CHARACTERS = 256;

const SLASH = 47;
const QUESTION = 63;

/** The stats of all clusters, in one form: `grpc` or `grpc-web`. */
export class CallStats {
  readonly #protocol: string;
  readonly #clusters = new WeakMap<Cluster, Map<string, MethodStats>>();

  constructor(protocol: 'grpc' | 'grpc-web') {
    this.#protocol = protocol;
  }

  /** `method` is `<service>.<method>`; '': the stats have no method in their names. */
  of(cluster: Cluster, method: string): MethodStats {
    let methods = this.#clusters.get(cluster);
    if (methods === undefined) this.#clusters.set(cluster, (methods = new Map()));
    const known = methods.get(method);
    if (known !== undefined) return known;
    if (method !== '' && (methods.size >= MAX_METHODS || method.length > MAX_NAME_CHARACTERS))
      return this.of(cluster, '');
    const stats = new MethodStats(cluster, method === '' ? `${this.#protocol}.` : `${this.#protocol}.${method}.`);
    methods.set(method, stats);
    return stats;
  }
}

/** All filters of a worker share these, and so the limit of names. */
export const grpcCalls = new CallStats('grpc');
export const grpcWebCalls = new CallStats('grpc-web');

/** The stats of one method of a cluster. Each exists from its first use. */
export class MethodStats {
  readonly #cluster: Cluster;
  readonly #prefix: string;
  readonly #counters = new Map<string, DynamicCounter>();
  #time: DynamicHistogram | undefined;

  constructor(cluster: Cluster, prefix: string) {
    this.#cluster = cluster;
    this.#prefix = prefix;
  }

  /** Counts the end of a call. `status`: the text of its grpc-status. */
  ended(status: string): void {
    // Hosts may send any text, which would become a name.
    if (/^[0-9]{1,3}$/.test(status)) this.#counter(status).increment();
    this.#counter(status === '0' ? 'success' : 'failure').increment();
    this.#counter('total').increment();
  }

  requested(messages: number): void {
    this.#counter('request_message_count').add(messages);
  }

  responded(messages: number): void {
    this.#counter('response_message_count').add(messages);
  }

  /** Records how long the host took, from the last byte of the request to the last byte of the response. */
  took(milliseconds: number): void {
    this.#time ??= this.#cluster.histogram(`${this.#prefix}upstream_rq_time`);
    this.#time.record(milliseconds);
  }

  #counter(name: string): DynamicCounter {
    let counter = this.#counters.get(name);
    if (counter === undefined) this.#counters.set(name, (counter = this.#cluster.counter(this.#prefix + name)));
    return counter;
  }
}

/** The service and the method of a call. */
export interface CalledMethod {
  readonly service: string;
  readonly method: string;
}

/** Returns what `/<service>/<method>` names; undefined for a path of another form. As in Envoy, repeated slashes count once. */
export function calledMethod({ memory, pathStart, pathEnd }: HeaderBlock): CalledMethod | undefined {
  const { bytes } = memory;
  let end = pathStart;
  while (end < pathEnd && bytes[end] !== QUESTION) end++;
  const parts: string[] = [];
  for (let at = pathStart; at < end; at++) {
    if (bytes[at] === SLASH) continue;
    if (parts.length === 2) return undefined;
    const start = at;
    while (at < end && bytes[at] !== SLASH) at++;
    parts.push(memory.text(start, at));
  }
  const [service, method] = parts;
  return method === undefined ? undefined : { service: service!, method };
}
