// What listener filters have detected in the first bytes of a client's connection, before a filter chain and its transport socket
// are chosen. Types only; undefined stands for a connection about which nothing was detected.

/** Mutable while listener filters inspect the connection. Names are as the client claims them: nothing is verified. */
export interface DetectedProtocols {
  /** 'tls'; '' if none was detected, which filter chains treat as 'raw_buffer'. */
  transportProtocol: string;
  /** The client's offers in its order (ALPN), or the version of HTTP; empty if none was detected. */
  applicationProtocols: readonly string[];
  /** SNI, in lower case; '' without. */
  serverName: string;
  /** Fingerprints of the ClientHello; '' if they are not computed. */
  ja3: string;
  ja4: string;
}
