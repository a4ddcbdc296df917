// Takes from the Host of a request what a client may write or leave out without meaning another host, before anything is matched
// against it: the port (strip_any_host_port, strip_matching_host_port) and a dot behind the name (strip_trailing_host_dot).

import { headerKey } from '../../common/text/header-names.js';
import type { HttpConnectionManager } from '../../config/generated/api.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { portStart } from '../routing/actions/redirect.js';

/** The fields of HttpConnectionManager that are read here. */
export type HostConfig = Pick<
  HttpConnectionManager,
  'strip_any_host_port' | 'strip_matching_host_port' | 'strip_trailing_host_dot'
>;

/** What is asked about the connection that a request came on. */
export interface LocalEnd {
  /** Address of this end, with its port if it has one. */
  readonly localText: string;
}

export class HostNormalizer {
  readonly #stripsAnyPort: boolean;
  /** Only that of the address at which the request came. */
  readonly #stripsOwnPort: boolean;
  readonly #stripsDot: boolean;

  private constructor(config: HostConfig) {
    this.#stripsAnyPort = config.strip_any_host_port ?? false;
    this.#stripsOwnPort = config.strip_matching_host_port ?? false;
    this.#stripsDot = config.strip_trailing_host_dot ?? false;
  }

  /** Undefined when hosts are left as they are. */
  static of(config: HostConfig): HostNormalizer | undefined {
    const normalizer = new HostNormalizer(config);
    const doesAnything = normalizer.#stripsAnyPort || normalizer.#stripsOwnPort || normalizer.#stripsDot;
    return doesAnything ? normalizer : undefined;
  }

  apply(headers: HeaderBlock, end: LocalEnd): void {
    const host = headers.get(HOST);
    // The target of a CONNECT has a port that counts.
    if (host === undefined || headers.method === Method.Connect) return;
    const normal = this.#normal(host, end);
    if (normal !== host) headers.set(HOST, normal);
  }

  #normal(host: string, end: LocalEnd): string {
    const colon = portStart(host);
    const name = colon < 0 ? host : host.slice(0, colon);
    const port = colon < 0 ? '' : host.slice(colon);
    const hasDot = this.#stripsDot && name.length > 1 && name.endsWith('.');
    return (hasDot ? name.slice(0, -1) : name) + (this.#strips(port, end) ? '' : port);
  }

  /** `port`: with its colon; '' when there is none. */
  #strips(port: string, end: LocalEnd): boolean {
    if (port.length < 2) return false;
    return this.#stripsAnyPort || (this.#stripsOwnPort && Number(port.slice(1)) === portOf(end.localText));
  }
}

const HOST = headerKey('host');

/** NaN for the path of a Unix socket. */
function portOf(address: string): number {
  const start = portStart(address);
  return start < 0 ? Number.NaN : Number(address.slice(start + 1));
}
