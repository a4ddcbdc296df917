// envoy.filters.http.oauth2: logs users in at an authorization server (OAuth 2.0 with PKCE, OpenID Connect), and keeps their tokens
// in cookies.

import type { OAuth2, OAuth2Config, OAuth2PerRoute, SdsSecretConfig } from '../../../../config/generated/api.js';
import {
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  reportMistakes,
  type WorkerContext,
} from '../../../sdk.js';
import { OAUTH_FIELDS } from './implemented.js';
import { OAuthFilter, removeStatus } from './oauth-filter.js';
import { OAuthPlace } from './place.js';
import { compileRules } from './rules.js';
import { OAuthLayout, type OAuthStats, routeStats, scopeStats, withDot } from './stats.js';

const OAUTH = 'type.googleapis.com/envoy.extensions.filters.http.oauth2.v3';

export const oauth2: HttpFilterExtension<OAuth2> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.oauth2',
  typeUrls: [`${OAUTH}.OAuth2`, `${OAUTH}.OAuth2PerRoute`],
  implemented: OAUTH_FIELDS,
  validate(message, report) {
    const { config } = message as OAuth2;
    if (config !== undefined) reportMistakes(report, '', () => compileRules(config, 'config'));
  },
  secrets: (message) => secretsOf((message as OAuth2).config),
  scopes: ({ config }, { statPrefix }) => (config === undefined ? [] : [scopeOf(config, statPrefix)]),
  createOnWorker({ config }, context, { statPrefix }) {
    const own = config && new OAuthPlace(config, context, statsIn(config, context, statPrefix));
    const routes = new RoutePlaces(context);
    return {
      create(stream, routeConfig) {
        const place = routeConfig === undefined ? own : routes.of(routeConfig as OAuth2PerRoute);
        return place === undefined ? WITHOUT_CONFIG : new OAuthFilter(stream, place);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs) => configs.at(-1) as OAuth2PerRoute,
};

/** The configurations of routes, each made for its first request. */
class RoutePlaces {
  readonly #context: WorkerContext;
  readonly #places = new WeakMap<OAuth2PerRoute, OAuthPlace>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  of(message: OAuth2PerRoute): OAuthPlace {
    let place = this.#places.get(message);
    if (place === undefined) {
      const config = message.config!;
      place = new OAuthPlace(config, this.#context, routeStats(config.stat_prefix ?? '', this.#context.stats));
      this.#places.set(message, place);
    }
    return place;
  }
}

/** As in Envoy, clients cannot set the fields of the filter even where it does nothing else. */
const WITHOUT_CONFIG: HttpFilter = {
  decodeHeaders(headers: HeaderBlock) {
    removeStatus(headers);
    return HeadersStatus.Continue;
  },
};

function secretsOf(config: OAuth2Config | undefined): SdsSecretConfig[] {
  const { hmac_secret: hmac, token_secret: token } = config?.credentials ?? {};
  const isUsed = config?.auth_type !== 'TLS_CLIENT_AUTH';
  return [hmac, isUsed ? token : undefined].filter((each) => each !== undefined);
}

function scopeOf({ stat_prefix: prefix = '' }: OAuth2Config, statPrefix: string) {
  return { prefix: withDot(statPrefix + prefix), layout: OAuthLayout };
}

function statsIn(config: OAuth2Config, { scope }: WorkerContext, statPrefix: string): OAuthStats {
  const { layout, prefix } = scopeOf(config, statPrefix);
  return scopeStats(scope(prefix, layout));
}
