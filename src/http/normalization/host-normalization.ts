// Normalizes the Host of a request before matching: removes the port (strip_any_host_port, strip_matching_host_port) and a trailing dot
// (strip_trailing_host_dot).

import { headerKey } from '../../common/text/header-names.js';
import type { HttpConnectionManager } from '../../config/generated/api.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { portStart } from '../routing/actions/redirect.js';

/** The fields of HttpConnectionManager that are read here. */
export type HostConfig = Pick<
  HttpConnectionManager,
  'strip_any_host_port' | 'strip_matching_host_port' | 'strip_trailing_host_dot'
>;

/** The connection of a request, as far as normalization needs it. */
export interface LocalEnd {
  /** Local address, with its port if it has one. */
  readonly localText: string;
}

export class HostNormalizer {
  readonly #stripsAnyPort: boolean;
  /** Strips the port only if it is that of the local address. */
  readonly #stripsOwnPort: boolean;
  readonly #stripsDot: boolean;

  private constructor(config: HostConfig) {
    this.#stripsAnyPort = config.strip_any_host_port ?? false;
    this.#stripsOwnPort = config.strip_matching_host_port ?? false;
    this.#stripsDot = config.strip_trailing_host_dot ?? false;
  }

  /** Returns undefined if hosts are not changed. */
  static of(config: HostConfig): HostNormalizer | undefined {
    const normalizer = new HostNormalizer(config);
    const doesAnything = normalizer.#stripsAnyPort || normalizer.#stripsOwnPort || normalizer.#stripsDot;
    return doesAnything ? normalizer : undefined;
  }

  apply(headers: HeaderBlock, end: LocalEnd): void {
    const host = headers.get(HOST);
    // The port of a CONNECT target is significant.
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
