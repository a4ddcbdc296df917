// The inputs of matchers (xds.type.matcher.v3.Matcher): values of a request or a connection.

import type {
  Any,
  DynamicMetadataInput,
  FilterStateInput,
  HttpRequestHeaderMatchInput,
  HttpResponseHeaderMatchInput,
  Json,
} from '../../../../config/generated/api.js';
import {
  BatonError,
  type HeaderBlock,
  type HeaderKey,
  headerKey,
  ipOfAddress,
  messageOf,
  portOfAddress,
  requestScheme,
  type ThreadStats,
  valueAt,
} from '../../../sdk.js';
import type { Addresses } from '../rbac/conditions.js';

/** The request or connection that inputs read from. `headers` is undefined for a connection. */
export interface Matched {
  readonly headers: HeaderBlock | undefined;
  readonly info: Addresses;
  /** For counters of matchers. */
  readonly stats: ThreadStats | undefined;
  /** Of matchers of responses only. */
  readonly response?: HeaderBlock;
  readonly isLocalReply?: boolean;
  /** Set by inputs of responses when there is no response yet. */
  lacksResponse?: boolean;
}

/** Reads one value; undefined: there is none. */
export interface MatchInput {
  /** Returns the value as text, decoded from UTF-8. */
  text(matched: Matched): string | undefined;
  /** Returns the value itself, for matchers of metadata values. */
  value?(matched: Matched): Json | undefined;
}

/** The input of expressions, which read the whole stream. */
const ATTRIBUTES = 'xds.type.matcher.v3.HttpAttributesCelMatchInput';
export const ATTRIBUTES_INPUT: MatchInput = { text: () => undefined };

const NETWORK = 'envoy.extensions.matching.common_inputs.network.v3';
const SSL = 'envoy.extensions.matching.common_inputs.ssl.v3';

const network = (text: (info: Addresses) => string | undefined): (() => MatchInput) => {
  const input = { text: ({ info }: Matched) => text(info) };
  return () => input;
};
const nonEmpty = (text: string | undefined) => (text === '' ? undefined : text);

/** Compilers of inputs, by the full name of the input's message. */
const INPUTS: { readonly [name: string]: (config: Any, where: string) => MatchInput } = {
  'envoy.type.matcher.v3.HttpRequestHeaderMatchInput': headerInput,
  [ATTRIBUTES]: () => ATTRIBUTES_INPUT,
  [`${NETWORK}.DestinationIPInput`]: network((info) => nonEmpty(ipOfAddress(info.downstreamLocalAddress))),
  [`${NETWORK}.DestinationPortInput`]: network((info) => portText(info.downstreamLocalAddress)),
  [`${NETWORK}.SourceIPInput`]: network((info) => nonEmpty(ipOfAddress(info.downstreamRemoteAddress))),
  [`${NETWORK}.SourcePortInput`]: network((info) => portText(info.downstreamRemoteAddress)),
  [`${NETWORK}.DirectSourceIPInput`]: network((info) => nonEmpty(ipOfAddress(info.downstreamDirectRemoteAddress))),
  [`${NETWORK}.ServerNameInput`]: network((info) => nonEmpty(info.downstream?.detected?.serverName)),
  [`${NETWORK}.DynamicMetadataInput`]: metadataInput,
  [`${NETWORK}.FilterStateInput`]: filterStateInput,
  [`${SSL}.UriSanInput`]: network((info) => joined(info.downstream?.security?.peer?.uriSans)),
  [`${SSL}.DnsSanInput`]: network((info) => joined(info.downstream?.security?.peer?.dnsSans)),
  [`${SSL}.SubjectInput`]: network((info) => nonEmpty(info.downstream?.security?.peer?.subject)),
};

/** Inputs of responses only. */
const RESPONSE_INPUTS: typeof INPUTS = {
  'envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput': () => ({
    text: ({ response }) => response && String(response.status),
  }),
  'envoy.type.matcher.v3.HttpResponseStatusCodeClassMatchInput': () => ({
    text: ({ response }) => response && statusClass(response.status),
  }),
  'envoy.type.matcher.v3.HttpResponseLocalReplyMatchInput': () => ({
    text: ({ isLocalReply }) => String(isLocalReply === true),
  }),
  'envoy.type.matcher.v3.HttpResponseHeaderMatchInput': responseHeaderInput,
};

/** As in Envoy, other statuses have no class. */
function statusClass(status: number): string | undefined {
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : undefined;
}

/** Inputs of requests only. */
const HTTP_ONLY = new Set(['envoy.type.matcher.v3.HttpRequestHeaderMatchInput', ATTRIBUTES]);

/** What a matcher is for. */
export interface MatchedKind {
  /** Requests, not connections. */
  readonly isHttp: boolean;
  /** Responses, which it sees with their requests. */
  readonly isResponse?: boolean;
  /** Called for each input that reads a response. */
  readonly onResponseInput?: (() => void) | undefined;
}

/** Notes that the response is read before there is one. */
function noticed(input: MatchInput): MatchInput {
  return {
    text(matched) {
      if (matched.response === undefined) matched.lacksResponse = true;
      return input.text(matched);
    },
  };
}

/** Compiles an input. `where`: its path. Throws a BatonError for an unknown input. */
export function compileInput(
  config: Any | undefined,
  where: string,
  { isHttp, isResponse = false, onResponseInput }: MatchedKind,
): MatchInput {
  const name = config?.['@type'].replace(/^.*\//, '') ?? '';
  const ofResponse = isResponse && Object.hasOwn(RESPONSE_INPUTS, name) ? RESPONSE_INPUTS[name] : undefined;
  if (ofResponse !== undefined) {
    onResponseInput?.();
    return noticed(ofResponse(config!, `${where}.typed_config`));
  }
  const create = Object.hasOwn(INPUTS, name) && (isHttp || !HTTP_ONLY.has(name)) ? INPUTS[name] : undefined;
  if (create !== undefined) return create(config!, `${where}.typed_config`);
  throw new BatonError('CONFIG_INVALID', `'${name}' is not an input of this matcher`, {
    where: `${where}.typed_config`,
  });
}

const PSEUDO_HEADERS: { readonly [name: string]: (headers: HeaderBlock) => string | undefined } = {
  ':method': (headers) => headers.methodText(),
  ':path': (headers) => headers.pathText(),
  ':scheme': (headers) => requestScheme(headers) || undefined,
};

function headerInput(config: Any, where: string): MatchInput {
  const name = (config as unknown as HttpRequestHeaderMatchInput).header_name!.toLowerCase();
  const read = Object.hasOwn(PSEUDO_HEADERS, name)
    ? PSEUDO_HEADERS[name]!
    : fieldReader(name === ':authority' ? 'host' : name, `${where}.header_name`);
  return {
    text({ headers }) {
      const value = headers && read(headers);
      return value === undefined ? undefined : Buffer.from(value, 'latin1').toString();
    },
  };
}

/** Joins the values of a repeated header with commas, as Envoy does. */
function fieldReader(name: string, where: string): (headers: HeaderBlock) => string | undefined {
  const key = keyOf(name, where);
  return (headers) => {
    let value: string | undefined;
    for (let index = headers.find(key); index >= 0; index = headers.findNext(key, index))
      value = value === undefined ? headers.value(index) : `${value},${headers.value(index)}`;
    return value;
  };
}

function keyOf(name: string, where: string): HeaderKey {
  try {
    return headerKey(name);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}

function responseHeaderInput(config: Any, where: string): MatchInput {
  const name = (config as unknown as HttpResponseHeaderMatchInput).header_name!.toLowerCase();
  const read =
    name === ':status' ? (head: HeaderBlock) => String(head.status) : fieldReader(name, `${where}.header_name`);
  return {
    text({ response }) {
      const value = response && read(response);
      return value === undefined ? undefined : Buffer.from(value, 'latin1').toString();
    },
  };
}

function metadataInput(config: Any): MatchInput {
  const { filter = '', path = [] } = config as unknown as DynamicMetadataInput;
  const keys = path.map(({ key = '' }) => key);
  const value = ({ info }: Matched) => {
    const struct = info.dynamicMetadata?.get(filter);
    return struct && valueAt(struct, keys);
  };
  return {
    value,
    text(matched) {
      const found = value(matched);
      return typeof found === 'string' ? found : undefined;
    },
  };
}

function filterStateInput(config: Any): MatchInput {
  const { field = '', key = '' } = config as unknown as FilterStateInput;
  return {
    text({ info }) {
      const object = info.filterState?.get(key);
      const value = field === '' ? object?.text : object?.fields?.[field];
      return value === undefined ? undefined : Buffer.from(String(value), 'latin1').toString();
    },
  };
}

function portText(address: string): string | undefined {
  return ipOfAddress(address) === '' ? undefined : String(portOfAddress(address));
}

function joined(names: readonly string[] | undefined): string | undefined {
  return names === undefined || names.length === 0 ? undefined : names.join(',');
}
