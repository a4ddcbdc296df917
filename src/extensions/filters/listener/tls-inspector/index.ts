// envoy.filters.listener.tls_inspector: detects TLS, and what the client's first message (ClientHello) says about the server that
// it wants, before a filter chain and its transport socket are chosen. It consumes nothing.

import type { TlsInspector } from '../../../../config/generated/api.js';
import {
  accepted,
  type DetectedProtocols,
  defineLayout,
  type InspectedConnection,
  type ListenerFilter,
  type ListenerFilterExtension,
  type Scope,
  Verdict,
} from '../../../sdk.js';
import {
  alpnOf,
  CLIENT_HELLO,
  type ClientHello,
  hasKnownVersion,
  isEchValid,
  parseClientHello,
  serverNameOf,
} from './client-hello.js';
import { ja3, ja4 } from './fingerprints.js';
import { HelloRecords } from './hello-records.js';

const TlsInspectorStats = defineLayout({
  client_hello_too_large: 'counter',
  tls_found: 'counter',
  tls_not_found: 'counter',
  alpn_found: 'counter',
  alpn_not_found: 'counter',
  sni_found: 'counter',
  sni_not_found: 'counter',
  bytes_processed: 'histogram_bytes',
});

const PREFIX = 'tls_inspector.';
const MAX_HELLO_BYTES = 16384;

export const tlsInspector: ListenerFilterExtension<TlsInspector> = {
  category: 'envoy.filters.listener',
  name: 'envoy.filters.listener.tls_inspector',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector'],
  implemented: {
    'envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector': {
      enable_ja3_fingerprinting: true,
      enable_ja4_fingerprinting: true,
      close_connection_on_client_hello_parsing_errors: true,
      max_client_hello_size: true,
      initial_read_buffer_size: accepted('all bytes that have arrived are read at once, up to max_client_hello_size'),
    },
  },
  scopes: () => [{ prefix: PREFIX, layout: TlsInspectorStats }],
  createOnWorker: (config, context) => new TlsInspectorFilter(config, context.scope(PREFIX, TlsInspectorStats)),
};

class TlsInspectorFilter implements ListenerFilter {
  readonly maxBytes: number;
  readonly #stats: Scope;
  readonly #closesOnErrors: boolean;
  readonly #hasJa3: boolean;
  readonly #hasJa4: boolean;

  constructor(config: TlsInspector, stats: Scope) {
    this.maxBytes = config.max_client_hello_size ?? MAX_HELLO_BYTES;
    this.#stats = stats;
    this.#closesOnErrors = config.close_connection_on_client_hello_parsing_errors ?? false;
    this.#hasJa3 = config.enable_ja3_fingerprinting ?? false;
    this.#hasJa4 = config.enable_ja4_fingerprinting ?? false;
  }

  inspect(bytes: Uint8Array, connection: InspectedConnection): number {
    const seen = bytes.length > this.maxBytes ? bytes.subarray(0, this.maxBytes) : bytes;
    const { at } = TlsInspectorStats;
    const isFull = seen.length === this.maxBytes;
    const state = records.read(seen);
    if (state === 'incomplete' && !isFull) return Verdict.NeedsMore;
    this.#stats.record(at.bytes_processed, state === 'incomplete' ? seen.length : records.processed);
    if (state === 'closed') return Verdict.Refuses;
    if (state === 'incomplete') return this.#refuseTooLarge();
    const hello = state === 'complete' && records.type === CLIENT_HELLO ? parseClientHello(records.content) : undefined;
    const serverName = hello && isEchValid(hello) ? serverNameOf(hello) : undefined;
    if (hello !== undefined && serverName !== undefined) {
      this.#stats.increment(serverName === '' ? at.sni_not_found : at.sni_found);
      if (hasKnownVersion(hello)) {
        this.#found(hello, serverName, connection.detect());
        return 0;
      }
      this.#stats.increment(at.tls_not_found);
      return Verdict.Refuses;
    }
    if (isFull && this.#closesOnErrors) return this.#refuseTooLarge();
    this.#stats.increment(at.tls_not_found);
    return this.#closesOnErrors ? Verdict.Refuses : 0;
  }

  #refuseTooLarge(): Verdict {
    this.#stats.increment(TlsInspectorStats.at.client_hello_too_large);
    return Verdict.Refuses;
  }

  #found(hello: ClientHello, serverName: string, detected: DetectedProtocols): void {
    const { at } = TlsInspectorStats;
    const protocols = alpnOf(hello);
    if (protocols !== undefined) detected.applicationProtocols = protocols;
    if (this.#hasJa3) detected.ja3 = ja3(hello);
    if (this.#hasJa4) detected.ja4 = ja4(hello);
    detected.transportProtocol = 'tls';
    detected.serverName = serverName;
    this.#stats.increment(at.tls_found);
    this.#stats.increment(protocols === undefined ? at.alpn_not_found : at.alpn_found);
  }
}

/** Used by all filters of the thread, one call at a time. */
const records = new HelloRecords();
