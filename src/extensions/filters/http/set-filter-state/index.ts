// envoy.filters.http.set_filter_state: sets named objects of a request, made from formats, for logs and headers.

import type { SetFilterStateConfig } from '../../../../config/generated/api.js';
import {
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  reportMistakes,
  type StreamControl,
} from '../../../sdk.js';
import { compileValues, KINDS, VALUE_FIELDS, type ValueRule } from '../../common/filter-state-values.js';

const TYPE = 'envoy.extensions.filters.http.set_filter_state.v3.Config';
export const setFilterState: HttpFilterExtension<SetFilterStateConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.set_filter_state',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    [TYPE]: { on_request_headers: true, clear_route_cache: true },
    ...VALUE_FIELDS,
  },
  validate(config, report) {
    reportMistakes(report, '', () => compile(config as SetFilterStateConfig, ''));
  },
  createOnWorker(config): HttpFilterFactory {
    const own = compile(config, '');
    return {
      create: (stream, routeConfig) =>
        new SetFilterStateFilter(stream, [own, ...((routeConfig as readonly Rules[] | undefined) ?? [])], own),
    };
  },
  /** All levels apply, the most general one first. */
  compileRouteConfig: (configs, where) => configs.map((config) => compile(config as SetFilterStateConfig, where)),
};

interface Rules {
  readonly rules: readonly ValueRule[];
  /** The route is chosen again, by the headers that earlier filters may have changed. */
  readonly choosesRouteAgain: boolean;
}

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
function compile(config: SetFilterStateConfig, where: string): Rules {
  const list = where === '' ? 'on_request_headers' : `${where}.on_request_headers`;
  return {
    rules: compileValues(config.on_request_headers, list, KINDS),
    choosesRouteAgain: config.clear_route_cache ?? false,
  };
}

class SetFilterStateFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #levels: readonly Rules[];
  readonly #own: Rules;

  constructor(stream: StreamControl, levels: readonly Rules[], own: Rules) {
    this.#stream = stream;
    this.#levels = levels;
    this.#own = own;
  }

  decodeHeaders(): HeadersStatus {
    const { info } = this.#stream;
    for (const { rules } of this.#levels) {
      for (const { format, isReadOnly, isValid, key, sharing, skipsEmpty } of rules) {
        const text = format.text(info);
        if ((text === '' && skipsEmpty) || isValid?.(text) === false) continue;
        info.ownFilterState().set(key, { text, isReadOnly, sharing });
      }
    }
    if (!this.#own.choosesRouteAgain) return HeadersStatus.Continue;
    this.#stream.continueWithNewRoute();
    return HeadersStatus.Continue;
  }
}
