// envoy.filters.http.custom_response: replaces responses by configured ones, chosen by a matcher.

import type { Any, CustomResponse, LocalResponsePolicy } from '../../../../config/generated/api.js';
import {
  BatonError,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  obeyed,
  ResponseFlag,
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

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { info } = this.#stream;
    const policy = this.#find(headers);
    if (policy === undefined) return HeadersStatus.Continue;
    const { responseCodeDetails: details } = info;
    // Formats read the response that is replaced.
    info.responseHeaders = headers;
    info.responseCode = headers.status;
    this.#stream.sendLocalReply({
      status: policy.status ?? headers.status,
      body: policy.body(info),
      details: policy.keepsDetails ? details : policy.details,
      flags: ResponseFlag.None,
      editHeaders: policy.headerEditor(info),
    });
    return HeadersStatus.StopIteration;
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
