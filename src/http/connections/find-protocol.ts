// The protocol of a connection: the configured one, or the one that TLS has negotiated, or the one that its first bytes show.

import type { ServerProtocol } from '../codec/connections.js';

/** The protocols that clients may use, one or both. */
export interface ServerProtocols {
  readonly http1: ServerProtocol | undefined;
  readonly http2: ServerProtocol | undefined;
}

/** The name of HTTP/2 in ALPN. As in Envoy, any other one stands for HTTP/1. */
const ALPN_HTTP2 = 'h2';

/** The bytes by which Envoy recognizes HTTP/2. */
const PREFACE_START = new TextEncoder().encode('PRI * HTTP/2');

/**
 * Returns the protocol, or the bytes received so far if they do not show it yet.
 * @param negotiated by ALPN; '' if nothing was
 * @param kept the result of the last call, for the bytes before memory[offset, offset + length)
 */
export function findProtocol(
  { http1, http2 }: ServerProtocols,
  negotiated: string,
  kept: Uint8Array | undefined,
  memory: Uint8Array,
  offset: number,
  length: number,
): ServerProtocol | Uint8Array {
  if (http2 === undefined || http1 === undefined) return http1 ?? http2!;
  if (negotiated !== '') return negotiated === ALPN_HTTP2 ? http2 : http1;
  const before = kept?.length ?? 0;
  const compared = Math.min(PREFACE_START.length - before, length);
  for (let i = 0; i < compared; i++) if (memory[offset + i] !== PREFACE_START[before + i]) return http1;
  if (before + compared === PREFACE_START.length) return http2;
  return PREFACE_START.slice(0, before + compared);
}
