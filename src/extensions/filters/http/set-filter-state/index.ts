// envoy.filters.http.set_filter_state: sets named objects of a request, made from formats, for logs and headers.

import type { FilterStateValue, SetFilterStateConfig } from '../../../../config/generated/api.js';
import {
  BatonError,
  buildEach,
  byValue,
  compileSubstitutionFormat,
  type Format,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  ipOfAddress,
  parseAddress,
  reportMistakes,
  type StreamControl,
  type UpstreamSharing,
  withinPlace,
} from '../../../sdk.js';

const TYPE = 'envoy.extensions.filters.http.set_filter_state.v3.Config';
/** The kinds of objects, each with what its content must be; undefined: anything. */
const KINDS: { readonly [kind: string]: ((text: string) => boolean) | undefined } = {
  'envoy.string': undefined,
  // The hits of a request, for rate limit services.
  'envoy.ratelimit.hits_addend': isUint32,
  // The host of a dynamic forward proxy.
  'envoy.upstream.dynamic_host': undefined,
  'envoy.upstream.dynamic_port': isUint32,
  // In Envoy, requests with other ones get other connections. Here that is so for all objects that a connection gets.
  'envoy.hashable_string': undefined,
  // The ends of connections to internal listeners, for their listener filter original_dst.
  'envoy.filters.listener.original_dst.local_ip': isSocketAddress,
  'envoy.filters.listener.original_dst.remote_ip': isSocketAddress,
};

/** Returns whether the text is an IP address with port. */
function isSocketAddress(text: string): boolean {
  return parseAddress(text) !== undefined && ipOfAddress(text) !== '';
}

function isUint32(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 32;
}

export const setFilterState: HttpFilterExtension<SetFilterStateConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.set_filter_state',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    [TYPE]: { on_request_headers: true, clear_route_cache: true },
    'envoy.extensions.filters.common.set_filter_state.v3.FilterStateValue': {
      object_key: true,
      factory_key: true,
      format_string: true,
      read_only: true,
      shared_with_upstream: byValue({ NONE: true, ONCE: true, TRANSITIVE: true }),
      skip_if_empty: true,
    },
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

/** One object to set. */
interface Rule {
  readonly key: string;
  readonly format: Format;
  readonly isReadOnly: boolean;
  readonly sharing: UpstreamSharing;
  readonly skipsEmpty: boolean;
  /** Undefined: any content is valid. */
  readonly isValid: ((text: string) => boolean) | undefined;
}

interface Rules {
  readonly rules: readonly Rule[];
  /** The route is chosen again, by the headers that earlier filters may have changed. */
  readonly choosesRouteAgain: boolean;
}

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
function compile(config: SetFilterStateConfig, where: string): Rules {
  const list = where === '' ? 'on_request_headers' : `${where}.on_request_headers`;
  return {
    rules: buildEach(config.on_request_headers ?? [], (value, index) => ruleOf(value, `${list}[${index}]`)),
    choosesRouteAgain: config.clear_route_cache ?? false,
  };
}

function ruleOf(value: FilterStateValue, where: string): Rule {
  const { object_key: key = '', factory_key: factory = '' } = value;
  if (!Object.hasOwn(KINDS, factory || key)) {
    const message = factory === '' ? `'${key}' is no kind of object` : `there are no objects of the kind '${factory}'`;
    const remedy = 'set factory_key: envoy.string';
    throw new BatonError('CONFIG_INVALID', message, {
      where: `${where}.${factory === '' ? 'object_key' : 'factory_key'}`,
      remedy,
    });
  }
  return {
    key,
    format: withinPlace(`${where}.format_string`, () => compileSubstitutionFormat(value.format_string)),
    isReadOnly: value.read_only ?? false,
    sharing: value.shared_with_upstream ?? 'NONE',
    skipsEmpty: value.skip_if_empty ?? false,
    isValid: KINDS[factory || key],
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
