// The name of the host that a request goes to in a dynamic forward proxy.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { DestinationReader } from './destination.js';

const HOST = headerKey('host');

export class NameReader implements DestinationReader {
  readonly #defaultPort: number;

  constructor(defaultPort: number) {
    this.#defaultPort = defaultPort;
  }

  /** Returns name and port: what a filter has determined, or else the authority of a request, or the SNI of a connection. */
  read(headers: HeaderBlock | undefined, info: StreamInfo): string | undefined {
    if (info.requestedHost !== '') return info.requestedHost;
    const name = headers === undefined ? info.downstream?.detected?.serverName : headers.get(HOST);
    return name ? withPort(name, this.#defaultPort) : undefined;
  }
}

/** Returns the authority with a port. */
export function withPort(authority: string, port: number): string {
  const hasPort = authority.includes(':') && !authority.endsWith(']');
  return hasPort ? authority : `${authority}:${port}`;
}
