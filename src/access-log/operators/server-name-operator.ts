// %REQUESTED_SERVER_NAME(X:Y)%: the server that the client has requested, by SNI (which a listener filter has detected), by the host
// of the request, or by the first of both that is known.

import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import { HeaderOperator } from './header-operator.js';
import { type HeaderNeeds, type Operator, TextOperator } from './operator.js';

const ORDERS = ['SNI_ONLY', 'SNI_FIRST', 'HOST_FIRST'] as const;
/** The headers that have the host: before a rewrite, after it, or the first of both. */
const HOSTS: Readonly<Record<string, readonly string[]>> = {
  ORIG_OR_HOST: ['x-envoy-original-host', ':authority'],
  HOST: [':authority'],
  ORIG: ['x-envoy-original-host'],
};

/** Compiles the parameter. `isInHeader`: the output is a header value. Adds the headers that the operator reads to `needs`. Throws a BatonError for an invalid parameter. */
export function serverNameOperator(parameter: string, isInHeader: boolean, needs: HeaderNeeds): Operator {
  const [order = '', which = 'ORIG_OR_HOST'] = parameter === '' ? ['SNI_ONLY'] : parameter.split(':');
  const names = Object.hasOwn(HOSTS, which) ? HOSTS[which]! : undefined;
  if (!ORDERS.some((each) => each === order) || names === undefined) {
    throw operatorError(
      `operator %REQUESTED_SERVER_NAME% takes one of ${ORDERS.join(' ')}, and after a colon one of ${Object.keys(HOSTS).join(' ')}, not '${parameter}'`,
    );
  }
  const sni = new TextOperator(({ downstream }) => shownServerName(downstream?.detected?.serverName ?? ''));
  if (order === 'SNI_ONLY') return sni;
  for (const name of names) needs.request.add(name);
  const host = new HeaderOperator({ head: 'request', names, isInHeader });
  return order === 'SNI_FIRST' ? new FirstOf(sni, host) : new FirstOf(host, sni);
}

class FirstOf implements Operator {
  readonly isNumber = false;
  readonly #first: Operator;
  readonly #second: Operator;

  constructor(first: Operator, second: Operator) {
    this.#first = first;
    this.#second = second;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    return this.#first.write(info, out) || this.#second.write(info, out);
  }
}

/** Clients send any bytes as their server name. Those that no name of a host has are replaced, as in Envoy. */
function shownServerName(name: string): string {
  const shown = name.replace(/[^A-Za-z0-9.\-_]/g, '_');
  return shown === name ? name : `invalid:${shown}`;
}
