// The request that opens a tunnel, from tunneling_config: CONNECT to the configured host, or POST.

import { compileFormat, type Format } from '../../../../access-log/formats/format.js';
import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { BatonError, messageOf } from '../../../../common/errors/errors.js';
import type { Random } from '../../../../common/random.js';
import { type HeaderKey, headerKey } from '../../../../common/text/header-names.js';
import type { TcpProxy_TunnelingConfig } from '../../../../config/generated/api.js';
import { REQUEST_ID_BYTES, writeRequestId } from '../../../../http/headers/edge/request-id.js';
import { checkFieldName } from '../../../../http/headers/field-name.js';
import { type HeaderBlock, Method } from '../../../../http/headers/header-block.js';
import {
  compileHeaderMutations,
  type HeaderMutations,
  isControlledField,
} from '../../../../http/headers/header-mutations.js';

/** The namespace of the dynamic metadata with the request ID. */
const NAMESPACE = 'envoy.filters.network.tcp_proxy';

export class TunnelRequest {
  readonly propagatesHeaders: boolean;
  readonly propagatesTrailers: boolean;
  readonly #hostname: Format;
  /** The path of a POST; '' for CONNECT. */
  readonly #path: string;
  readonly #mutations: HeaderMutations | undefined;
  readonly #id: { readonly header: HeaderKey; readonly metadataKey: string } | undefined;

  /** Throws a BatonError, or Mistakes, whose places are relative to tunneling_config. */
  constructor(config: TcpProxy_TunnelingConfig) {
    this.propagatesHeaders = config.propagate_response_headers ?? false;
    this.propagatesTrailers = config.propagate_response_trailers ?? false;
    this.#hostname = hostnameFormat(config.hostname ?? '');
    this.#path = postPath(config);
    this.#mutations = compileHeaderMutations([
      { toRemove: undefined, toAdd: config.headers_to_add, where: (_list, index) => `headers_to_add[${index}]` },
    ]);
    this.#id = requestId(config);
  }

  /**
   * Returns the host for a connection; undefined if it is no authority (RFC 3986, section 3.2): its parts may come from the client, and
   * must not end the line of the request.
   */
  hostname(info: StreamInfo): string | undefined {
    const text = this.#hostname.text(info);
    return text.length <= MAX_AUTHORITY && AUTHORITY.test(text) ? text : undefined;
  }

  /** Writes the head of a request for `hostname`. */
  write(head: HeaderBlock, hostname: string, isSecure: boolean, info: StreamInfo, random: Random): void {
    if (this.#path === '') {
      head.setMethod(Method.Connect, 'CONNECT');
      head.setPath(hostname);
    } else {
      head.setMethod(Method.Post, 'POST');
      head.setPath(this.#path);
      head.scheme = isSecure ? 'https' : 'http';
    }
    head.add(HOST, hostname);
    if (this.#id !== undefined) {
      const id = newRequestId(random);
      head.set(this.#id.header, id);
      info.ownDynamicMetadata().merge(NAMESPACE, { [this.#id.metadataKey]: id });
    }
    this.#mutations?.apply(head, info);
  }
}

const HOST = headerKey('host');
const AUTHORITY = /^[\w.~!$&'()*+,;=%:[\]-]+$/;
const MAX_AUTHORITY = 1024;

function hostnameFormat(hostname: string): Format {
  try {
    return compileFormat(hostname);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where: 'hostname', cause: error });
  }
}

function postPath({ post_path: path = '', use_post: usesPost = false }: TcpProxy_TunnelingConfig): string {
  const where = 'post_path';
  if (!usesPost) {
    if (path === '') return '';
    throw new BatonError('CONFIG_INVALID', "a post path can't be set when use_post is not", { where });
  }
  if (path === '') return '/';
  if (!/^\/[!-~]*$/.test(path) || path.includes('#'))
    throw new BatonError('CONFIG_INVALID', `'${path}' is not the path of a request`, { where });
  return path;
}

function requestId(config: TcpProxy_TunnelingConfig) {
  if (config.request_id_extension === undefined) return undefined;
  const name = config.request_id_header || 'x-request-id';
  checkFieldName(name, 'request_id_header');
  if (isControlledField(name))
    throw new BatonError('CONFIG_INVALID', `'${name}' controls the message: choose another one`, {
      where: 'request_id_header',
    });
  return { header: headerKey(name), metadataKey: config.request_id_metadata_key || 'tunnel_request_id' };
}

const idBytes = Buffer.alloc(REQUEST_ID_BYTES);

function newRequestId(random: Random): string {
  writeRequestId(idBytes, 0, random);
  return idBytes.toString('latin1');
}
