// envoy.filters.http.header_mutation: adds, changes and removes fields of requests and responses.

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
  NoRoomError,
  reportMistakes,
  type StreamControl,
} from '../../../sdk.js';

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
  readonly response: HeaderMutations | undefined;
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
    for (const { request, response } of this.#levels) {
      request?.apply(headers, this.#stream.info);
      isNeeded ||= response?.needsRequestHeaders === true;
    }
    if (isNeeded && !headers.retain()) {
      throw new NoRoomError('no room in the arena for a request head that response mutations need');
    }
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    for (const { response } of this.#levels) response?.applyToResponse(headers, this.#stream.info);
    return HeadersStatus.Continue;
  }
}

function compile(config: MutationsConfig | undefined, where: string): Mutations {
  return {
    request: compileList(config?.request_mutations, `${where}.request_mutations`),
    response: compileList(config?.response_mutations, `${where}.response_mutations`),
  };
}

/** Compiles mutations as separate steps, so that they are applied in the configured order. */
function compileList(mutations: readonly HeaderMutation[] | undefined, where: string): HeaderMutations | undefined {
  return compileHeaderMutations(
    (mutations ?? []).map(({ remove, append }, index) => ({
      toRemove: remove === undefined ? undefined : [remove],
      toAdd: append === undefined ? undefined : [append],
      where: (list) => `${where}[${index}].${list === 'to_add' ? 'append' : 'remove'}`,
    })),
  );
}
