// streamInfo(), connection(), connectionStreamInfo(), and filterState().

import {
  byteText,
  type FilterStateObject,
  LuaError,
  type LuaMethod,
  PROTOCOL_NAMES,
  type StreamInfo,
} from '../../../../sdk.js';
import { LuaClass } from './classes.js';
import { LuaConnectionMetadata, LuaDynamicMetadata } from './metadata.js';
import type { InfoScope } from './scope.js';
import { LuaSslConnection } from './ssl.js';

export class LuaStreamInfo {
  readonly #scope: InfoScope;
  readonly #drain: () => void;
  #dynamicMetadata: LuaDynamicMetadata | undefined;

  /** `drain`: closes the client's connection when the request has ended. */
  constructor(scope: InfoScope, drain: () => void) {
    this.#scope = scope;
    this.#drain = drain;
  }

  get lua(): LuaClass {
    return LuaClass.StreamInfo;
  }

  get info(): StreamInfo {
    return this.#scope.info;
  }

  dynamicMetadata(): LuaDynamicMetadata {
    this.#dynamicMetadata ??= new LuaDynamicMetadata(this.#scope);
    return this.#dynamicMetadata;
  }

  filterState(): LuaFilterState {
    return new LuaFilterState(this.#scope);
  }

  downstreamSslConnection(): LuaSslConnection | null {
    return sslOf(this.#scope.info);
  }

  drainConnectionUponCompletion(): void {
    this.#drain();
  }
}

export class LuaConnection {
  readonly #scope: InfoScope;

  constructor(scope: InfoScope) {
    this.#scope = scope;
  }

  get lua(): LuaClass {
    return LuaClass.Connection;
  }

  ssl(): LuaSslConnection | null {
    return sslOf(this.#scope.info);
  }
}

export class LuaConnectionStreamInfo {
  readonly #scope: InfoScope;

  constructor(scope: InfoScope) {
    this.#scope = scope;
  }

  get lua(): LuaClass {
    return LuaClass.ConnectionStreamInfo;
  }

  dynamicMetadata(): LuaConnectionMetadata {
    return new LuaConnectionMetadata(this.#scope);
  }
}

export class LuaFilterState {
  readonly #scope: InfoScope;

  constructor(scope: InfoScope) {
    this.#scope = scope;
  }

  get lua(): LuaClass {
    return LuaClass.FilterState;
  }

  /** Objects of this build have no fields. */
  get(key: string, field: string | undefined): string | undefined {
    return field === undefined ? this.#scope.info.filterState?.get(key)?.text : undefined;
  }

  set(key: string, factory: string, text: string): void {
    if (factory !== 'envoy.string') throw new LuaError(`'${factory}' does not have an object factory`);
    const object: FilterStateObject = { text, isReadOnly: false, sharing: 'NONE' };
    if (!this.#scope.info.ownFilterState().set(key, object)) throw new LuaError(`'${key}' is read-only`);
  }
}

function sslOf({ downstreamSecurity }: StreamInfo): LuaSslConnection | null {
  return downstreamSecurity === undefined ? null : new LuaSslConnection(downstreamSecurity);
}

export const STREAM_INFO: readonly LuaMethod[] = [
  text('protocol', ({ protocol }) => PROTOCOL_NAMES[protocol]!),
  text('routeName', ({ routeName }) => routeName),
  text('virtualClusterName', ({ virtualClusterName }) => virtualClusterName),
  text('downstreamLocalAddress', (info) => info.downstreamLocalAddress),
  text('downstreamRemoteAddress', (info) => info.downstreamRemoteAddress),
  text('downstreamDirectRemoteAddress', (info) => info.downstreamDirectRemoteAddress),
  text('downstreamDirectLocalAddress', (info) => info.downstreamDirectLocalAddress),
  text(
    'requestedServerName',
    (info) => info.downstreamSecurity?.serverName ?? info.downstream?.detected?.serverName ?? '',
  ),
  ['dynamicMetadata', '', LuaStreamInfo.prototype.dynamicMetadata],
  ['dynamicTypedMetadata', 's', noTypedMetadata],
  ['filterState', '', LuaStreamInfo.prototype.filterState],
  ['downstreamSslConnection', '', LuaStreamInfo.prototype.downstreamSslConnection],
  ['drainConnectionUponCompletion', '', LuaStreamInfo.prototype.drainConnectionUponCompletion],
];

export const CONNECTION: readonly LuaMethod[] = [['ssl', '', LuaConnection.prototype.ssl]];
export const CONNECTION_STREAM_INFO: readonly LuaMethod[] = [
  ['dynamicMetadata', '', LuaConnectionStreamInfo.prototype.dynamicMetadata],
  ['dynamicTypedMetadata', 's', noTypedMetadata],
];
export const FILTER_STATE: readonly LuaMethod[] = [
  ['get', 'sS', LuaFilterState.prototype.get],
  ['set', 'sss', LuaFilterState.prototype.set],
];

/** No filter of this build sets typed metadata. */
function noTypedMetadata(): null {
  return null;
}

function text(name: string, of: (info: StreamInfo) => string): LuaMethod {
  return [
    name,
    '',
    function (this: LuaStreamInfo) {
      return byteText(of(this.info));
    },
  ];
}
