// ctx: the context of one request. What a hook does not use is not created.

import type { ConnectionFacts, HttpContext, HttpRequest, Metadata, Reply, RouteFacts } from '../../../../api/index.js';
import { connectionFacts } from '../../../script/connection-facts.js';
import { formatOf } from '../../../script/formats.js';
import { type ScopeOwner, StreamScope } from '../../../script/stream-scope.js';
import { textOfHead } from '../../../script/text.js';
import type { StreamControl } from '../../../sdk.js';
import { routeFacts, StreamMetadata } from './facts.js';
import { ScriptReply } from './reply.js';
import type { SharedByRequests } from './shared.js';
import { toRequest } from './to-request.js';

export class ScriptContext extends StreamScope implements HttpContext {
  readonly config: unknown;
  /** The request, once onRequest is called. */
  request: HttpRequest | undefined;
  /** The request has not gone on: its destination can be changed. */
  isInRequest = false;
  /** The route is selected again when the hook ends. */
  rematches = false;
  readonly #shared: SharedByRequests;
  readonly #stream: StreamControl;
  #metadata: StreamMetadata | undefined;
  #hasCluster = false;

  constructor(shared: SharedByRequests, stream: StreamControl, config: unknown, owner: ScopeOwner) {
    super(shared, owner);
    this.#shared = shared;
    this.#stream = stream;
    this.config = config;
  }

  get metadata(): Metadata {
    this.#metadata ??= new StreamMetadata(this.#stream.info);
    return this.#metadata;
  }

  get route(): RouteFacts | undefined {
    return routeFacts(this.#stream.route());
  }

  get connection(): ConnectionFacts {
    const { info } = this.#stream;
    return connectionFacts(info.connectionId, info);
  }

  reply(status: number, body: string | Uint8Array = '', headers?: Readonly<Record<string, string>>): Reply {
    return new ScriptReply(status, body, headers);
  }

  setCluster(name: string): void {
    if (!this.isInRequest) throw new Error('setCluster() has an effect in onRequest only');
    if (this.rematches) throw new Error('the route will be selected again: call either setCluster() or rematchRoute()');
    const cluster = this.#shared.findCluster(name);
    if (cluster === undefined) throw new Error(`setCluster(): there is no cluster '${name}'`);
    if (!this.#stream.setCluster(cluster)) throw new Error('setCluster(): the request has no route to a cluster');
    this.#hasCluster = true;
  }

  toRequest(): Promise<Request> {
    if (this.request === undefined) return Promise.reject(new Error('toRequest() works in onRequest only'));
    return toRequest(this.request, this.signal);
  }

  format(text: string): string {
    const format = formatOf(text);
    const { request, response, trailers } = format.needs;
    // Heads may have gone on.
    if (request.size + response.size + trailers.size > 0)
      throw new TypeError('format() has no operators for headers: use request.headers and response.headers');
    return textOfHead(format.text(this.#stream.info));
  }

  rematchRoute(): void {
    if (!this.isInRequest) throw new Error('rematchRoute() has an effect in onRequest only');
    if (this.#hasCluster) throw new Error('setCluster() was called: call either setCluster() or rematchRoute()');
    this.rematches = true;
  }

  override end(): void {
    this.isInRequest = false;
    super.end();
  }
}
