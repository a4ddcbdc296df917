// envoy.filters.http.jwt_authn: verifies JSON Web Tokens, and passes on what they contain.

import type { Any, JwtAuthentication, JwtAuthnPerRouteConfig, JwtProvider } from '../../../../config/generated/api.js';
import {
  accepted,
  compileCallRetries,
  compileStringMatcher,
  durationMs,
  type HttpChain,
  type HttpFilterExtension,
  httpTarget,
  type ImplementedTable,
  obeyed,
  type Report,
  Runtime,
  readDataSource,
  reportMistakes,
  settableKey,
  unpack,
} from '../../../sdk.js';
import { JwtFilter } from './jwt-filter.js';
import { checkRules, JwtRules } from './jwt-rules.js';
import { RETRY_ON } from './key-source.js';
import { parseKeys } from './keys.js';
import { JwtStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.jwt_authn.v3';
const FILTER = `${PACKAGE}.JwtAuthentication`;
const PER_ROUTE = `${PACKAGE}.PerRouteConfig`;

const FIELDS = {
  'envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication': obeyed(
    'providers',
    'rules',
    'filter_state_rules',
    'bypass_cors_preflight',
    'requirement_map',
    'strip_failure_response',
    'stat_prefix',
  ),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtProvider': obeyed(
    'issuer',
    'audiences',
    'subjects',
    'require_expiration',
    'max_lifetime',
    'remote_jwks',
    'local_jwks',
    'forward',
    'from_headers',
    'from_params',
    'from_cookies',
    'forward_payload_header',
    'pad_forward_payload_header',
    'payload_in_metadata',
    'normalize_payload_in_metadata',
    'header_in_metadata',
    'failed_status_in_metadata',
    'clock_skew_seconds',
    'jwt_cache_config',
    'claim_to_headers',
    'clear_route_cache',
  ),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtProvider.NormalizePayload': obeyed('space_delimited_claims'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtCacheConfig': obeyed('jwt_cache_size', 'jwt_max_token_size'),
  'envoy.extensions.filters.http.jwt_authn.v3.RemoteJwks': {
    ...obeyed('http_uri', 'cache_duration', 'async_fetch', 'retry_policy'),
  },
  'envoy.extensions.filters.http.jwt_authn.v3.JwksAsyncFetch': {
    failed_refetch_duration: true,
    fast_listener: accepted('requests wait for the first keys, so that the listener need not'),
  },
  'envoy.extensions.filters.http.jwt_authn.v3.JwtHeader': obeyed('name', 'value_prefix'),
  'envoy.extensions.filters.http.jwt_authn.v3.ProviderWithAudiences': obeyed('provider_name', 'audiences'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement': obeyed(
    'provider_name',
    'provider_and_audiences',
    'requires_any',
    'requires_all',
    'allow_missing_or_failed',
    'allow_missing',
    'extract_only_without_validation',
  ),
  'envoy.extensions.filters.http.jwt_authn.v3.ExtractOnlyWithoutValidation': obeyed('verification_status_header'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtRequirementOrList': obeyed('requirements'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtRequirementAndList': obeyed('requirements'),
  'envoy.extensions.filters.http.jwt_authn.v3.RequirementRule': obeyed('match', 'requires', 'requirement_name'),
  'envoy.extensions.filters.http.jwt_authn.v3.FilterStateRule': obeyed('name', 'requires'),
  'envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig': obeyed('disabled', 'requirement_name'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtClaimToHeader': obeyed('header_name', 'claim_name', 'claim_path'),
  'envoy.extensions.filters.http.jwt_authn.v3.JwtClaimToHeader.PathSegment': obeyed('key'),
} satisfies ImplementedTable;

export const jwtAuthn: HttpFilterExtension<JwtAuthentication> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.jwt_authn',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: FIELDS,
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    if (filter === undefined) return;
    for (const [name, provider] of Object.entries(filter.providers ?? {})) checkProvider(name, provider, report);
    reportMistakes(report, '', () => checkRules(filter, new Runtime()));
    filter.rules?.forEach(({ requirement_name: name }, index) => {
      if (name !== undefined && !Object.hasOwn(filter.requirement_map ?? {}, name))
        report(
          `rules[${index}].requirement_name`,
          `Wrong requirement_name: ${name}: requirement_map has none of this name`,
        );
    });
  },
  clusters: (config) =>
    Object.entries(unpack(config, FILTER)?.providers ?? {}).map(([name, { remote_jwks: remote }]) => [
      `providers[${JSON.stringify(name)}].remote_jwks.http_uri.cluster`,
      remote?.http_uri?.cluster,
    ]),
  scopes: (config, chain) => [{ prefix: statsPrefix(config, chain), layout: JwtStats }],
  createOnWorker(config, { calls, clock, random, runtime, scope, timers }, chain) {
    const stats = scope(statsPrefix(config, chain), JwtStats);
    const rules = new JwtRules(config, { calls, clock, timers, stats }, runtime, random);
    return {
      create(stream, routeConfig) {
        const { disabled, requirement_name: name } = (routeConfig as JwtAuthnPerRouteConfig | undefined) ?? {};
        if (disabled !== true) return new JwtFilter(stream, rules, stats, clock, name);
        stats.increment(JwtStats.at.allowed);
        return undefined;
      },
      close: () => rules.close(),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs) => configs.at(-1) as JwtAuthnPerRouteConfig,
};

function checkProvider(name: string, provider: JwtProvider, report: Report): void {
  const where = `providers[${JSON.stringify(name)}]`;
  const { local_jwks: local, remote_jwks: remote, subjects } = provider;
  if (local !== undefined)
    reportMistakes(report, '', () => {
      const keys = parseKeys(readDataSource(local, `${where}.local_jwks`));
      if (typeof keys === 'string')
        report(`${where}.local_jwks`, `Provider '${name}' in jwt_authn config has invalid local jwks: ${keys}`);
    });
  for (const [path, name] of headerNames(provider)) reportMistakes(report, `${where}.${path}`, () => settableKey(name));
  if (subjects !== undefined) reportMistakes(report, '', () => compileStringMatcher(subjects, `${where}.subjects`));
  const target = remote && httpTarget(remote.http_uri?.uri ?? '');
  if (typeof target === 'string') report(`${where}.remote_jwks.http_uri.uri`, target);
  reportMistakes(report, '', () =>
    compileCallRetries(remote?.retry_policy, `${where}.remote_jwks.retry_policy`, RETRY_ON),
  );
  if (remote?.http_uri?.timeout !== undefined && durationMs(remote.http_uri.timeout) === 0)
    report(`${where}.remote_jwks.http_uri.timeout`, 'must be above 0: without a timeout a request could wait forever');
  provider.claim_to_headers?.forEach(({ claim_name, claim_path = [] }, index) => {
    if ((claim_name ?? '') === '' && claim_path.length === 0)
      report(`${where}.claim_to_headers[${index}]`, 'it needs a claim_name or a claim_path');
  });
}

/** Returns the names of header fields, with their paths. */
function headerNames({ claim_to_headers, forward_payload_header: payload, from_headers }: JwtProvider) {
  return [
    ...(from_headers ?? []).map(({ name = '' }, index) => [`from_headers[${index}].name`, name] as const),
    ...(claim_to_headers ?? []).map(
      ({ header_name: name = '' }, index) => [`claim_to_headers[${index}].header_name`, name] as const,
    ),
    ...(payload ? [['forward_payload_header', payload] as const] : []),
  ];
}

function statsPrefix({ stat_prefix: own = '' }: JwtAuthentication, { statPrefix }: HttpChain): string {
  return `${statPrefix}jwt_authn.${own === '' ? '' : `${own}.`}`;
}
