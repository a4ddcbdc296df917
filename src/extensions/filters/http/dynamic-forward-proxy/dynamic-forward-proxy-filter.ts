// The filter of one request.

import {
  type ForwardProxy,
  forwardProxyOf,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type NamedHostWaiter,
  ResponseFlag,
  type StreamControl,
} from '../../../sdk.js';

const HOST = headerKey('host');

/** Envoy's names of the objects. */
const DYNAMIC_HOST = 'envoy.upstream.dynamic_host';
const DYNAMIC_PORT = 'envoy.upstream.dynamic_port';

/** What replaces the request's authority, which names its host. */
export interface HostRewrite {
  /** '': none. */
  readonly literal: string;
  /** The header that has it; requests without it keep theirs. */
  readonly header: HeaderKey | undefined;
}

const PENDING_OVERFLOW = {
  status: 503,
  body: 'Dynamic forward proxy pending request overflow',
  details: 'dynamic_forward_proxy_pending_request_overflow',
  flags: 0,
};

export class DynamicForwardProxyFilter implements HttpFilter, NamedHostWaiter {
  readonly #stream: StreamControl;
  readonly #rewrite: HostRewrite | undefined;
  readonly #readsFilterState: boolean;
  /** The host that the request waits for. */
  #awaited: { readonly proxy: ForwardProxy; readonly key: string } | undefined;

  constructor(stream: StreamControl, rewrite: HostRewrite | undefined, readsFilterState: boolean) {
    this.#stream = stream;
    this.#rewrite = rewrite;
    this.#readsFilterState = readsFilterState;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const proxy = forwardProxyOf(this.#stream.route()?.cluster);
    if (proxy === undefined) return HeadersStatus.Continue;
    const authority = this.#hostOf(headers);
    if (authority === '') return HeadersStatus.Continue;
    const key = proxy.keyOf(authority, this.#port());
    this.#stream.info.requestedHost = key;
    if (proxy.hosts.find(key) !== undefined) return HeadersStatus.Continue;
    if (!proxy.hosts.request(key, this)) {
      this.#stream.sendLocalReply(PENDING_OVERFLOW);
      return HeadersStatus.StopIteration;
    }
    this.#awaited = { proxy, key };
    this.#stream.pauseRequest();
    return HeadersStatus.StopIteration;
  }

  /** Returns the authority of the host, and rewrites that of the request as the route requires. */
  #hostOf(headers: HeaderBlock): string {
    const { header, literal = '' } = this.#rewrite ?? {};
    const rewritten = literal || (header && headers.get(header)) || '';
    if (rewritten !== '') headers.set(HOST, rewritten);
    return this.#stateOf(DYNAMIC_HOST) || rewritten || headers.get(HOST) || '';
  }

  /** Returns the port of an authority without one; undefined: that of the cluster. */
  #port(): number | undefined {
    const port = Number(this.#stateOf(DYNAMIC_PORT));
    return port > 0 && port <= 65535 ? port : undefined;
  }

  #stateOf(name: string): string {
    return (this.#readsFilterState ? this.#stream.info.filterState?.get(name)?.text : undefined) ?? '';
  }

  hostSettled(refusal: string | undefined): void {
    this.#awaited = undefined;
    if (refusal === undefined) {
      this.#stream.continueDecoding();
      this.#stream.resumeRequest();
      return;
    }
    const isOverflow = !refusal.startsWith('dns_resolution_failure');
    this.#stream.sendLocalReply({
      status: 503,
      body: isOverflow ? 'DNS cache overflow' : 'DNS resolution failure',
      details: refusal,
      flags: isOverflow ? 0 : ResponseFlag.DnsResolutionFailed,
    });
  }

  onDestroy(): void {
    this.#awaited?.proxy.hosts.cancel(this.#awaited.key, this);
    this.#awaited = undefined;
  }
}
