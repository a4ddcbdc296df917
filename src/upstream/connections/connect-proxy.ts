// The HTTP proxy through which a connection to a host goes (http_11_proxy), and its answer to CONNECT.

import { proxyAddressIn } from '../../config/fields/proxy-address.js';
import { addressOfText, addressText, encodeAddress, ipAddress } from '../../io/addresses/address.js';
import type { Host } from '../hosts/host.js';

/** Longer heads are refused. */
const MAX_HEAD = 64 * 1024;
const FIRST_SIZE = 1024;
const HEAD_END = '\r\n\r\n';
const ACCEPTED = /^HTTP\/1\.[01] 200(?: [^\0\r\n]*)?\r\n/;

export interface ConnectProxy {
  readonly sockaddr: Uint8Array;
  /** The address as text. */
  readonly text: string;
  /** Undefined: the proxy gets no CONNECT, but what is meant for the host. */
  readonly request: Uint8Array | undefined;
}

/**
 * Returns the proxy of a host: that of its metadata, of its locality's, or the default one ('': none). As in Envoy, the default one gets
 * plain requests as they are. A host of this machine, at a Unix socket, has none: no proxy could reach it.
 */
export function connectProxy(host: Host, defaultAddress: string, isSecure: boolean): ConnectProxy | undefined {
  if (!HAS_PORT.test(host.address)) return undefined;
  const { address: ip = '', port_value: port = 0 } =
    (proxyAddressIn(host.metadata) ?? proxyAddressIn(host.localityMetadata))?.socket_address ?? {};
  const own = ipAddress(ip, port);
  if (own === undefined && defaultAddress === '') return undefined;
  const address = own ?? addressOfText(defaultAddress);
  const isAsked = own !== undefined || isSecure;
  return {
    sockaddr: encodeAddress(address),
    text: addressText(address),
    request: isAsked ? requestFor(host) : undefined,
  };
}

/** Matches an IP address with port, and no path. */
const HAS_PORT = /^(?:[\d.]+|\[[^\]\s/]+\]):\d+$/;

/** The host's name, or else its address, is the target. */
function requestFor({ address, hostname }: Host): Uint8Array {
  const port = address.slice(address.lastIndexOf(':'));
  const target = HOST_NAME.test(hostname) ? hostname + port : address;
  return Buffer.from(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}${HEAD_END}`, 'latin1');
}

/** Discovery services name hosts: other names must not change the request. */
const HOST_NAME = /^[\w.~-]{1,255}$/;

/** Where an answer is complete. */
export const enum Answer {
  Incomplete = -1,
  Refused = -2,
}

/** The answer of a proxy as it arrives. */
export class ConnectAnswer {
  #bytes = Buffer.alloc(FIRST_SIZE);
  #length = 0;

  /** Returns how many of the bytes belong to the accepting answer, which ends with them, or else an Answer. */
  receive(bytes: Uint8Array): number {
    const before = this.#length;
    const taken = Math.min(bytes.length, MAX_HEAD - before);
    this.#append(bytes.subarray(0, taken));
    const at = this.#bytes
      .subarray(0, this.#length)
      .indexOf(HEAD_END, Math.max(0, before - HEAD_END.length + 1), 'latin1');
    if (at < 0) return this.#length === MAX_HEAD ? Answer.Refused : Answer.Incomplete;
    if (!ACCEPTED.test(this.#bytes.toString('latin1', 0, at + 2))) return Answer.Refused;
    return at + HEAD_END.length - before;
  }

  #append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }
}
