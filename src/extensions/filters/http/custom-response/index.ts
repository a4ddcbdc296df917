// envoy.filters.http.custom_response: replaces responses by configured ones, chosen by a matcher.

import type { Any, CustomResponse, LocalResponsePolicy } from '../../../../config/generated/api.js';
import {
  BatonError,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type LocalReply,
  NoRoomError,
  obeyed,
  reportMistakes,
  type StreamControl,
  unpack,
} from '../../../sdk.js';
import { compileMatcher, type MatchTree } from '../../common/matching/matcher.js';
import { LocalPolicy } from './local-policy.js';

const FILTER = 'envoy.extensions.filters.http.custom_response.v3.CustomResponse';
const LOCAL = 'envoy.extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy';
/** The details of a response of a host. */
const VIA_UPSTREAM = 'via_upstream';

type Policies = MatchTree<LocalPolicy> | undefined;

export const customResponse: HttpFilterExtension<CustomResponse> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.custom_response',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  takesOwnMessageFromRoutes: true,
  implemented: { [FILTER]: obeyed('custom_response_matcher') },
  validate: (config, report) => reportMistakes(report, '', () => void compile(config as CustomResponse, '')),
  createOnWorker(config) {
    const own = compile(config, '');
    return {
      create(stream, routeConfig) {
        const ofRoute = (routeConfig as readonly Policies[] | undefined) ?? [];
        return ofRoute.length === 0 && own === undefined
          ? undefined
          : new CustomResponseFilter(stream, [...ofRoute, own]);
      },
    };
  },
  /** The most specific level whose matcher finds something decides. */
  compileRouteConfig: (configs, where) => configs.map((config) => compile(config as CustomResponse, where)).reverse(),
};

function compile({ custom_response_matcher: matcher }: CustomResponse, where: string): Policies {
  if (matcher === undefined) return undefined;
  const path = where === '' ? 'custom_response_matcher' : `${where}.custom_response_matcher`;
  return compileMatcher(matcher, path, {
    isHttp: true,
    isResponse: true,
    action(any: Any, at: string): LocalPolicy {
      const policy: LocalResponsePolicy | undefined = unpack(any, LOCAL);
      if (policy === undefined) throw new BatonError('CONFIG_INVALID', `the action is a ${LOCAL}`, { where: at });
      return new LocalPolicy(policy, at);
    },
  });
}

class CustomResponseFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #levels: readonly Policies[];

  constructor(stream: StreamControl, levels: readonly Policies[]) {
    this.#stream = stream;
    this.#levels = levels;
  }

  /** The head of the request is read when the response arrives. */
  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (!headers.retain())
      throw new NoRoomError('no room in the arena for a request head that its response depends on');
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    const reply = this.#replyInPlaceOf(headers);
    if (reply === undefined) return HeadersStatus.Continue;
    this.#stream.sendLocalReply(reply);
    return HeadersStatus.StopIteration;
  }

  /** While it runs, the stream has this response, which expressions and formats read. */
  #replyInPlaceOf(response: HeaderBlock): LocalReply | undefined {
    const { info } = this.#stream;
    const { responseCode, responseHeaders } = info;
    info.responseCode = response.status;
    info.responseHeaders = response;
    try {
      return this.#find(response)?.reply(info, response.status);
    } finally {
      info.responseCode = responseCode;
      info.responseHeaders = responseHeaders;
    }
  }

  #find(response: HeaderBlock): LocalPolicy | undefined {
    const { info } = this.#stream;
    const headers = info.requestHeaders as HeaderBlock | undefined;
    const isLocalReply = info.responseCodeDetails !== VIA_UPSTREAM;
    const matched = { headers, info, stats: undefined, response, isLocalReply };
    for (const level of this.#levels) {
      const found = level?.find(matched);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
