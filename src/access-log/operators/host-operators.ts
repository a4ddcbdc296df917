// %UPSTREAM_HOST_NAME%, %UPSTREAM_HOSTS_ATTEMPTED%, %UPSTREAM_CONNECTION_IDS_ATTEMPTED% and their relatives: the hosts of all tries.

import type { LogBuffer } from '../log-buffer.js';
import type { HostNames, StreamInfo } from '../stream/stream-info.js';
import { hostOf } from './address-operator.js';
import type { Operator } from './operator.js';

/** Returns the text of a host. */
export type HostText = (host: HostNames) => string;

export const address: HostText = (host) => host.address;
export const addressWithoutPort: HostText = (host) => hostOf(host.address);
export const name: HostText = (host) => host.hostname || host.address;
/** A hostname may have a port too. */
export const nameWithoutPort: HostText = (host) =>
  host.hostname === '' ? hostOf(host.address) : withoutPort(host.hostname);

function withoutPort(hostname: string): string {
  return hostname.replace(/:[0-9]+$/, '');
}

/** Returns the text of the last try's host, or ''. */
export function ofLastHost(text: HostText): (info: StreamInfo) => string {
  return ({ host }) => (host === undefined ? '' : text(host));
}

/** The hosts of all tries, separated by commas. */
export class AttemptedHostsOperator implements Operator {
  readonly isNumber = false;
  readonly #text: HostText;

  constructor(text: HostText) {
    this.#text = text;
  }

  write({ earlierHosts, host }: StreamInfo, out: LogBuffer): boolean {
    const start = out.length;
    if (earlierHosts !== undefined) for (const earlier of earlierHosts) this.#add(earlier, start, out);
    this.#add(host, start, out);
    return out.length > start;
  }

  #add(host: HostNames | undefined, start: number, out: LogBuffer): void {
    if (host === undefined) return;
    if (out.length > start) out.byte(COMMA);
    out.text(this.#text(host));
  }
}

/** The connections of all tries that got one, separated by commas. */
export class AttemptedConnectionsOperator implements Operator {
  readonly isNumber = false;

  write({ earlierConnectionIds, upstreamConnectionId }: StreamInfo, out: LogBuffer): boolean {
    const start = out.length;
    if (earlierConnectionIds !== undefined) for (const id of earlierConnectionIds) add(id, start, out);
    add(upstreamConnectionId, start, out);
    return out.length > start;
  }
}

function add(id: number, start: number, out: LogBuffer): void {
  if (id === 0) return;
  if (out.length > start) out.byte(COMMA);
  out.number(id);
}

const COMMA = 44;
