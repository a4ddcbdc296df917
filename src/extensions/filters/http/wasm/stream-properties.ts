// The properties of a request that modules read (get_property), and those that they set.

import { keyOf } from '../../../script/header-keys.js';
import { type HeaderBlock, PROTOCOL_NAMES, requestScheme, type StreamControl, type StreamInfo } from '../../../sdk.js';
import { Result } from '../../../wasm/abi.js';
import { propertyBytes, valueIn } from '../../../wasm/contexts/property-values.js';

/** Properties of the filter state that a module has set. */
const PREFIX = 'wasm.';
/** Of one request. */
const MAX_SET = 256;
const MAX_VALUE_BYTES = 64 * 1024;

export class StreamProperties {
  /** The heads, while the module may read them. */
  request: HeaderBlock | undefined;
  response: HeaderBlock | undefined;
  readonly #stream: StreamControl;
  #set = 0;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  /** Returns undefined for what does not exist. */
  get(path: readonly string[]): Buffer | Result | undefined {
    const [first = '', second = ''] = path;
    const { info } = this.#stream;
    switch (first) {
      case 'request':
        return second === '' ? Result.SerializationFailure : propertyBytes(this.#request(path, info));
      case 'response':
        return second === '' ? Result.SerializationFailure : propertyBytes(this.#response(path, info));
      case 'source':
        return propertyBytes(address(info.downstreamRemoteAddress, path));
      case 'destination':
        return propertyBytes(address(info.downstreamLocalAddress, path));
      case 'connection':
        return propertyBytes(connection(path, info));
      case 'connection_id':
        return path.length === 1 ? propertyBytes(BigInt(info.connectionId)) : undefined;
      case 'upstream':
        return propertyBytes(upstream(path, info));
      case 'metadata':
        return this.#metadata(path, info);
      case 'xds':
        return propertyBytes(this.#configured(path, info));
      case 'filter_state':
        return path.length === 2 ? this.#state(second, info) : undefined;
      default:
        return path.length === 1 ? this.#state(`${PREFIX}${first}`, info) : undefined;
    }
  }

  set(path: string, value: Buffer): Result {
    if (value.length > MAX_VALUE_BYTES || this.#set >= MAX_SET) return Result.InternalFailure;
    this.#set++;
    const state = this.#stream.info.ownFilterState();
    const text = value.toString('latin1');
    const isSet = state.set(`${PREFIX}${path}`, { text, isReadOnly: false, sharing: 'NONE' });
    return isSet ? Result.Ok : Result.BadArgument;
  }

  #request(path: readonly string[], info: StreamInfo): unknown {
    const head = this.request;
    if (head === undefined) return undefined;
    if (path[1] === 'headers') return headers(head, path, true);
    if (path.length > 2) return undefined;
    const target = head.pathText();
    const query = target.indexOf('?');
    switch (path[1]) {
      case 'path':
        return target;
      case 'url_path':
        return query < 0 ? target : target.slice(0, query);
      case 'query':
        return query < 0 ? '' : target.slice(query + 1);
      case 'host':
        return field(head, 'host');
      case 'scheme':
        return requestScheme(head);
      case 'method':
        return head.methodText();
      case 'referer':
        return field(head, 'referer');
      case 'useragent':
        return field(head, 'user-agent');
      case 'id':
        return field(head, 'x-request-id');
      case 'protocol':
        return PROTOCOL_NAMES[info.protocol] || undefined;
      case 'time':
        return BigInt(Math.round(info.startRealtimeMs * 1000)) * 1000n;
      case 'size':
        return BigInt(field(head, 'content-length') ?? info.bytesReceived);
      default:
        return undefined;
    }
  }

  #response(path: readonly string[], info: StreamInfo): unknown {
    const head = this.response;
    if (path[1] === 'headers') return head && headers(head, path, false);
    if (path.length > 2) return undefined;
    switch (path[1]) {
      case 'code':
        return info.responseCode === 0 ? undefined : BigInt(info.responseCode);
      case 'code_details':
        return info.responseCodeDetails === '' ? undefined : info.responseCodeDetails;
      case 'flags':
        return BigInt(info.responseFlags);
      case 'size':
        return BigInt(info.bytesSent);
      default:
        return undefined;
    }
  }

  #configured(path: readonly string[], info: StreamInfo): unknown {
    switch (path[1]) {
      case 'cluster_name':
        return info.upstreamCluster?.name;
      case 'cluster_metadata':
        return valueIn(info.upstreamCluster?.metadata, path, 2);
      case 'route_name':
        return info.routeName;
      case 'route_metadata':
        return valueIn(info.route?.metadata, path, 2);
      case 'virtual_host_name':
        return info.virtualHostName;
      case 'upstream_host_metadata':
        return valueIn(info.host?.metadata, path, 2);
      case 'filter_chain_name':
        return info.chain?.filterChainName;
      case 'listener_metadata':
        return valueIn(info.chain?.listenerMetadata, path, 2);
      default:
        return undefined;
    }
  }

  #metadata(path: readonly string[], info: StreamInfo): Buffer | undefined {
    if (path[1] !== 'filter_metadata' || path[2] === undefined) return undefined;
    return propertyBytes(valueIn(info.dynamicMetadata?.get(path[2]), path, 3));
  }

  #state(key: string, info: StreamInfo): Buffer | undefined {
    const object = info.filterState?.get(key);
    return object && Buffer.from(object.text, 'latin1');
  }
}

function headers(head: HeaderBlock, path: readonly string[], isRequest: boolean): unknown {
  const name = path[2];
  if (path.length > 3) return undefined;
  if (name === undefined) {
    const all: Record<string, string> = {};
    for (let i = 0; i < head.size; i++) if (!head.isRemoved(i)) all[head.name(i)] ??= text(head.value(i));
    return all;
  }
  if (isRequest) {
    if (name === ':path') return head.pathText();
    if (name === ':method') return head.methodText();
    if (name === ':scheme') return requestScheme(head);
    if (name === ':authority') return field(head, 'host');
  } else if (name === ':status') return String(head.status);
  return field(head, name.toLowerCase());
}

function field(head: HeaderBlock, name: string): string | undefined {
  try {
    const value = head.get(keyOf(name));
    return value === undefined ? undefined : text(value);
  } catch {
    return undefined;
  }
}

/** A value with one character a byte, as text. */
function text(value: string): string {
  return Buffer.from(value, 'latin1').toString();
}

function address(shown: string, path: readonly string[]): unknown {
  if (path.length !== 2 || shown === '') return undefined;
  if (path[1] === 'address') return shown;
  const port = /:(\d+)$/.exec(shown)?.[1];
  return path[1] === 'port' && port !== undefined ? BigInt(port) : undefined;
}

function connection(path: readonly string[], info: StreamInfo): unknown {
  const security = info.downstreamSecurity;
  if (path.length !== 2) return undefined;
  switch (path[1]) {
    case 'id':
      return BigInt(info.connectionId);
    case 'mtls':
      return security?.peer !== undefined;
    case 'requested_server_name':
      return security?.serverName;
    case 'tls_version':
      return security?.version;
    case 'subject_peer_certificate':
      return security?.peer?.subject;
    case 'uri_san_peer_certificate':
      return security?.peer?.uriSans[0];
    case 'termination_details':
      return info.connectionTerminationDetails === '' ? undefined : info.connectionTerminationDetails;
    default:
      return undefined;
  }
}

function upstream(path: readonly string[], info: StreamInfo): unknown {
  if (path.length !== 2 || info.upstreamHost === '') return undefined;
  switch (path[1]) {
    case 'address':
    case 'port':
      return address(info.upstreamHost, path);
    case 'local_address':
      return info.upstreamLocalAddress;
    case 'transport_failure_reason':
      return info.upstreamTransportFailureReason;
    case 'request_attempt_count':
      return BigInt(info.attemptCount);
    default:
      return undefined;
  }
}
