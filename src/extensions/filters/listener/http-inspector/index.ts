// envoy.filters.listener.http_inspector: detects the version of HTTP on a plain connection, by which a filter chain can be chosen
// (`application_protocols`). It consumes nothing.

import type { HttpInspector } from '../../../../config/generated/api.js';
import {
  type CounterSlot,
  defineLayout,
  type InspectedConnection,
  type ListenerFilter,
  type ListenerFilterExtension,
  type Scope,
  Verdict,
} from '../../../sdk.js';
import { type HttpVersion, httpVersionOf } from './request-line.js';

const HttpInspectorStats = defineLayout({
  read_error: 'counter',
  http10_found: 'counter',
  http11_found: 'counter',
  http2_found: 'counter',
  http_not_found: 'counter',
});

const PREFIX = 'http_inspector.';
/** Maximum bytes of a request line. */
const MAX_LINE_BYTES = 64 * 1024;

export const httpInspector: ListenerFilterExtension<HttpInspector> = {
  category: 'envoy.filters.listener',
  name: 'envoy.filters.listener.http_inspector',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector'],
  implemented: { 'envoy.extensions.filters.listener.http_inspector.v3.HttpInspector': {} },
  scopes: () => [{ prefix: PREFIX, layout: HttpInspectorStats }],
  createOnWorker: (_config, context) => new HttpInspectorFilter(context.scope(PREFIX, HttpInspectorStats)),
};

const COUNTERS: Readonly<Record<HttpVersion, CounterSlot>> = {
  'http/1.0': HttpInspectorStats.at.http10_found,
  'http/1.1': HttpInspectorStats.at.http11_found,
  h2c: HttpInspectorStats.at.http2_found,
};

class HttpInspectorFilter implements ListenerFilter {
  readonly maxBytes = MAX_LINE_BYTES;
  readonly #stats: Scope;

  constructor(stats: Scope) {
    this.#stats = stats;
  }

  inspect(bytes: Uint8Array, connection: InspectedConnection): number {
    // What follows is encrypted.
    if (connection.detected?.transportProtocol === 'tls') return 0;
    const found = httpVersionOf(bytes.subarray(0, MAX_LINE_BYTES));
    if (found === 'invalid') {
      this.#stats.increment(HttpInspectorStats.at.http_not_found);
      return 0;
    }
    if (found === 'incomplete') {
      if (bytes.length < MAX_LINE_BYTES) return Verdict.NeedsMore;
      this.#stats.increment(HttpInspectorStats.at.read_error);
      return Verdict.Refuses;
    }
    this.#stats.increment(COUNTERS[found]);
    connection.detect().applicationProtocols = [found];
    return 0;
  }
}
