// envoy.filters.http.header_mutation: adds, changes and removes fields and trailers of requests and responses, and query
// parameters of requests.

import type {
  HeaderMutationFilter as FilterConfig,
  HeaderMutation,
  HeaderMutationPerRoute,
  Mutations as MutationsConfig,
} from '../../../../config/generated/api.js';
import {
  compileHeaderMutations,
  type HeaderBlock,
  type HeaderMutations,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  MUTATION_FIELDS,
  NoRoomError,
  reportMistakes,
  type StreamControl,
} from '../../../sdk.js';
import { compileQueryMutations, type QueryMutations } from './query-mutations.js';

export const headerMutation: HttpFilterExtension<FilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.header_mutation',
  runsUpstream: true,
  typeUrls: [
    'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
    'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute',
  ],
  validate(config, report) {
    const { mutations } = config as FilterConfig | HeaderMutationPerRoute;
    reportMistakes(report, '', () => compile(mutations, 'mutations'));
  },
  createOnWorker(config): HttpFilterFactory {
    const own = compile(config.mutations, 'mutations');
    const appliesSpecificLast = config.most_specific_header_mutations_wins ?? false;
    return {
      create(stream, routeConfig) {
        if (routeConfig === undefined) return new HeaderMutationFilter(stream, [own]);
        const levels = routeConfig as readonly Mutations[];
        return new HeaderMutationFilter(stream, [own, ...(appliesSpecificLast ? levels : levels.toReversed())]);
      },
    };
  },
  compileRouteConfig: (configs, where) =>
    configs.map((config) => compile((config as HeaderMutationPerRoute).mutations, `${where}.mutations`)),
};

/** The compiled mutations of the filter or of one route level. */
interface Mutations {
  readonly request: HeaderMutations | undefined;
  readonly query: QueryMutations | undefined;
  readonly requestTrailers: HeaderMutations | undefined;
  readonly response: HeaderMutations | undefined;
  readonly responseTrailers: HeaderMutations | undefined;
  /** The request head must be kept for later mutations. */
  readonly needsRequestHeaders: boolean;
}

class HeaderMutationFilter implements HttpFilter {
  readonly #stream: StreamControl;
  /** Applied in this order. */
  readonly #levels: readonly Mutations[];

  constructor(stream: StreamControl, levels: readonly Mutations[]) {
    this.#stream = stream;
    this.#levels = levels;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    let isNeeded = false;
    for (const { needsRequestHeaders, query, request } of this.#levels) {
      request?.apply(headers, this.#stream.info);
      query?.apply(headers, this.#stream.info);
      isNeeded ||= needsRequestHeaders;
    }
    if (isNeeded && !headers.retain()) {
      throw new NoRoomError('no room in the arena for a request head that later mutations need');
    }
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    for (const { response } of this.#levels) response?.applyToResponse(headers, this.#stream.info);
    return HeadersStatus.Continue;
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    for (const { requestTrailers } of this.#levels) requestTrailers?.apply(trailers, this.#stream.info);
    return HeadersStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    const { info } = this.#stream;
    for (const { responseTrailers } of this.#levels) {
      if (responseTrailers === undefined) continue;
      info.responseTrailers = trailers;
      responseTrailers.apply(trailers, info);
    }
    return HeadersStatus.Continue;
  }
}

function compile(mutations: MutationsConfig | undefined, where: string): Mutations {
  const config = mutations ?? {};
  const requestTrailers = compileList(config.request_trailers_mutations, `${where}.request_trailers_mutations`);
  const response = compileList(config.response_mutations, `${where}.response_mutations`);
  const responseTrailers = compileList(config.response_trailers_mutations, `${where}.response_trailers_mutations`);
  const later = [requestTrailers, response, responseTrailers];
  return {
    request: compileList(config.request_mutations, `${where}.request_mutations`),
    query: compileQueryMutations(config.query_parameter_mutations, `${where}.query_parameter_mutations`),
    requestTrailers,
    response,
    responseTrailers,
    needsRequestHeaders: later.some((mutations) => mutations?.needsRequestHeaders === true),
  };
}

/** Compiles mutations as separate steps, so that they are applied in the configured order. */
function compileList(mutations: readonly HeaderMutation[] | undefined, where: string): HeaderMutations | undefined {
  return compileHeaderMutations(
    (mutations ?? []).map(({ remove, append, remove_on_match: matching }, index) => ({
      toRemove: remove === undefined ? undefined : [remove],
      toAdd: append === undefined ? undefined : [append],
      toRemoveMatching: matching?.key_matcher,
      where: (list) => `${where}[${index}].${MUTATION_FIELDS[list]}`,
    })),
  );
}
