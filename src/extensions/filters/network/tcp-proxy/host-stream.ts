// The byte stream to a host as a proxied connection uses it: a TCP connection of its own, or a tunnel in an HTTP request.

import type { ConnectionSecurity } from '../../../../io/tls/connection-security.js';
import type { EndedBy } from '../../../../upstream/connections/host-connection.js';

export interface HostStream {
  /** Bytes can be sent. */
  readonly isConnected: boolean;
  /** The socket, where it belongs to this stream alone; undefined while connecting and after the close. */
  readonly connectedId: number | undefined;
  /** Its directions end one by one. */
  readonly halfCloses: boolean;
  /** When it began (monotonic), and when it was connected. */
  readonly startMs: number;
  readonly connectedMs: number;
  readonly localText: string;
  /** The address of the HTTP proxy of the connection; '': none. */
  readonly peerText: string;
  readonly serial: number;
  readonly security: ConnectionSecurity | undefined;
  /** Bytes that a close has to send first. */
  readonly pendingBytes: number;
  sendUnchecked(offset: number, length: number): void;
  shutdown(): void;
  pause(): void;
  resume(): void;
  /** Ends it in order; no event follows. */
  close(lingerMs?: number, flushMs?: number, gone?: () => void, by?: EndedBy): void;
  /** Aborts it; no event follows. */
  reset(): void;
  /** Releases the frozen socket, which another process continues. */
  release(): void;
}
