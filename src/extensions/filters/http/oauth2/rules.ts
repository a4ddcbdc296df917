// OAuth2Config, compiled: everything that does not change while the configuration is in use.

import type { CookieConfigs, OAuth2Config, OAuth2Credentials_CookieNames } from '../../../../config/generated/api.js';
import {
  BatonError,
  byteText,
  compileCallRetries,
  compileFormat,
  compileHeaderRules,
  compileStringMatcher,
  durationMs,
  type Format,
  type HeaderBlock,
  type HeaderKey,
  type HeaderRule,
  headerKey,
  type Memory,
  type StringRule,
  settableKey,
  withinPlace,
} from '../../../sdk.js';
import type { ChunkLimits } from './chunks.js';
import type { AssertionRules } from './client-assertion.js';
import { CookieTemplate } from './cookies.js';
import type { TokenEndpoint } from './token-call.js';
import { tokenEndpoint } from './token-endpoint.js';
import { type AbsoluteUrl, encodeQueryValue, parseUrl, QueryParameters } from './urls.js';

export interface OAuthRules {
  readonly endpoint: TokenEndpoint;
  readonly authorization: AbsoluteUrl;
  readonly authorizationQuery: QueryParameters;
  /** Follows the query. */
  readonly resources: string;
  readonly clientId: string;
  readonly authType: NonNullable<OAuth2Config['auth_type']>;
  readonly assertion: AssertionRules;
  readonly redirectUri: Format;
  /** Undefined: scheme and host of the request. */
  readonly originalUri: Format | undefined;
  readonly domains: readonly string[];
  readonly isRedirect: PathRule;
  readonly isSignOut: PathRule;
  readonly passThrough: readonly HeaderRule[] | undefined;
  readonly denyRedirect: readonly HeaderRule[] | undefined;
  readonly allowFailed: readonly HeaderRule[] | undefined;
  readonly forwardsBearer: boolean;
  /** The field that gets the id token. */
  readonly idTokenField: HeaderKey | undefined;
  readonly preservesAuthorization: boolean;
  /** '': none. */
  readonly endSession: string;
  /** Null: none is sent. Undefined: the root of the site. */
  readonly postLogout: Format | null | undefined;
  readonly usesRefreshToken: boolean;
  readonly setsAccessToken: boolean;
  readonly setsIdToken: boolean;
  readonly setsRefreshToken: boolean;
  readonly encrypts: boolean;
  readonly idTokenExpiresWithAccess: boolean;
  readonly defaultExpiresIn: number;
  readonly defaultRefreshExpiresIn: number;
  readonly nonceMaxAge: string;
  readonly verifierMaxAge: string;
  readonly cookieDomain: string;
  readonly cookies: OAuthCookies;
  readonly chunks: ChunkLimits | undefined;
}

export interface OAuthCookies {
  readonly bearer: CookieTemplate;
  readonly hmac: CookieTemplate;
  readonly expires: CookieTemplate;
  readonly id: CookieTemplate;
  readonly refresh: CookieTemplate;
  readonly nonce: CookieTemplate;
  readonly verifier: CookieTemplate;
}

/** Matches a path without query and fragment. */
export class PathRule {
  readonly #rule: StringRule;

  constructor(rule: StringRule) {
    this.#rule = rule;
  }

  matches(headers: HeaderBlock): boolean {
    const { memory, pathEnd, pathStart } = headers;
    let end = pathStart;
    while (end < pathEnd && memory.bytes[end] !== QUESTION_MARK && memory.bytes[end] !== HASH) end++;
    return this.#rule.matches(memory, pathStart, end);
  }

  matchesText(path: string, memory: Memory): boolean {
    const own = path.replace(/[?#].*/s, '');
    const at = memory.scratch(own.length);
    memory.write(at, own);
    return this.#rule.matches(memory, at, at + own.length);
  }
}

/** Compiles a configuration that has passed the schema. Throws BatonErrors. `where` is its path. */
export function compileRules(config: OAuth2Config, where: string): OAuthRules {
  const at = (field: string) => (where === '' ? field : `${where}.${field}`);
  const { credentials = {}, redirect_path_matcher: redirect, signout_path: signOut } = config;
  const domain = byteText(credentials.cookie_domain ?? '');
  const idTokenField =
    config.forward_id_token &&
    withinPlace(at('forward_id_token.header'), () => settableKey(config.forward_id_token!.header!));
  checkAuthorization(config, idTokenField, at(''));
  if (config.auth_type !== 'TLS_CLIENT_AUTH' && credentials.token_secret === undefined)
    throw mistake('token_secret is required when auth_type is not TLS_CLIENT_AUTH', at('credentials'));
  if (config.end_session_endpoint !== undefined && config.auth_scopes?.includes('openid') !== true) {
    const message = 'OAuth2 filter: end session endpoint is only supported for OpenID Connect.';
    throw mistake(message, at('end_session_endpoint'));
  }
  const authorization = parseUrl(byteText(config.authorization_endpoint ?? ''));
  if (authorization === undefined) {
    const text = config.authorization_endpoint;
    const message = `OAuth2 filter: invalid authorization endpoint URL '${text}' in config.`;
    throw mistake(message, at('authorization_endpoint'));
  }
  const format = (text: string | undefined, field: string) => (text ? compileFormatAt(text, at(field)) : undefined);
  return {
    endpoint: endpointOf(config, at),
    authorization,
    authorizationQuery: authorizationQuery(config, authorization),
    resources: (config.resources ?? []).map((each) => `&resource=${encodeQueryValue(byteText(each))}`).join(''),
    clientId: byteText(credentials.client_id ?? ''),
    authType: config.auth_type ?? 'URL_ENCODED_BODY',
    assertion: assertionRules(config),
    redirectUri: compileFormatAt(config.redirect_uri ?? '', at('redirect_uri')),
    originalUri: format(config.original_request_uri, 'original_request_uri'),
    domains: (config.allowed_redirect_domains ?? []).map(byteText),
    isRedirect: new PathRule(compileStringMatcher(redirect!.path!, at('redirect_path_matcher.path'))),
    isSignOut: new PathRule(compileStringMatcher(signOut!.path!, at('signout_path.path'))),
    passThrough: compileHeaderRules(config.pass_through_matcher, at('pass_through_matcher')),
    denyRedirect: compileHeaderRules(config.deny_redirect_matcher, at('deny_redirect_matcher')),
    allowFailed: compileHeaderRules(config.allow_failed_matcher, at('allow_failed_matcher')),
    forwardsBearer: config.forward_bearer_token ?? false,
    idTokenField,
    preservesAuthorization: config.preserve_authorization_header ?? false,
    endSession: byteText(config.end_session_endpoint ?? ''),
    postLogout: config.post_logout_redirect_uri?.disabled
      ? null
      : format(config.post_logout_redirect_uri?.uri, 'post_logout_redirect_uri.uri'),
    usesRefreshToken: config.use_refresh_token ?? true,
    setsAccessToken: config.disable_access_token_set_cookie !== true,
    setsIdToken: config.disable_id_token_set_cookie !== true,
    setsRefreshToken: config.disable_refresh_token_set_cookie !== true && (config.use_refresh_token ?? true),
    encrypts: config.disable_token_encryption !== true,
    idTokenExpiresWithAccess: config.use_access_token_expiry_for_id_token_cookie ?? false,
    defaultExpiresIn: seconds(config.default_expires_in, 0),
    defaultRefreshExpiresIn: seconds(config.default_refresh_token_expires_in, WEEK_SECONDS),
    nonceMaxAge: String(seconds(config.csrf_token_expires_in, FLOW_SECONDS)),
    verifierMaxAge: String(seconds(config.code_verifier_token_expires_in, FLOW_SECONDS)),
    cookieDomain: domain,
    cookies: cookiesOf(credentials.cookie_names ?? {}, config.cookie_configs ?? {}, domain),
    chunks: config.token_cookie_chunking && {
      maxBytes: config.token_cookie_chunking.max_cookie_size ?? 4096,
      maxChunks: config.token_cookie_chunking.max_chunks ?? 8,
    },
  };
}

const WEEK_SECONDS = 604_800;
const FLOW_SECONDS = 600;
const QUESTION_MARK = 63;
const HASH = 35;
const AUTHORIZATION = headerKey('authorization');

function checkAuthorization(config: OAuth2Config, idTokenField: HeaderKey | undefined, where: string): void {
  const uses = [
    config.forward_bearer_token === true,
    config.preserve_authorization_header === true,
    idTokenField?.name === AUTHORIZATION.name,
  ];
  if (uses.filter(Boolean).length < 2) return;
  const message =
    'invalid OAuth2 configuration: at most one of forward_bearer_token, preserve_authorization_header, or ' +
    'forward_id_token (when forwarding the ID token on the Authorization header) may be set, as they all use the ' +
    'Authorization header';
  throw mistake(message, where.replace(/\.$/, ''));
}

function endpointOf({ retry_policy: retry, token_endpoint: uri }: OAuth2Config, at: (field: string) => string) {
  return tokenEndpoint(uri ?? {}, at('token_endpoint'), compileCallRetries(retry, at('retry_policy')));
}

function authorizationQuery({ auth_scopes: scopes, credentials }: OAuth2Config, { target }: AbsoluteUrl) {
  const list = scopes === undefined || scopes.length === 0 ? ['user'] : scopes;
  return QueryParameters.of(target).with({
    client_id: byteText(credentials?.client_id ?? ''),
    response_type: 'code',
    scope: encodeQueryValue(byteText(list.join(' '))),
    code_challenge_method: 'S256',
  });
}

function assertionRules({ private_key_jwt_config: own = {}, token_endpoint: endpoint }: OAuth2Config): AssertionRules {
  return {
    algorithm: own.signing_algorithm ?? 'RS256',
    lifetimeSeconds: seconds(own.assertion_lifetime, 60),
    audience: own.assertion_audience || (endpoint?.uri ?? ''),
  };
}

function cookiesOf(names: OAuth2Credentials_CookieNames, configs: CookieConfigs, domain: string): OAuthCookies {
  return {
    bearer: new CookieTemplate(names.bearer_token || 'BearerToken', configs.bearer_token_cookie_config ?? {}, domain),
    hmac: new CookieTemplate(names.oauth_hmac || 'OauthHMAC', configs.oauth_hmac_cookie_config ?? {}, domain),
    expires: new CookieTemplate(
      names.oauth_expires || 'OauthExpires',
      configs.oauth_expires_cookie_config ?? {},
      domain,
    ),
    id: new CookieTemplate(names.id_token || 'IdToken', configs.id_token_cookie_config ?? {}, domain),
    refresh: new CookieTemplate(
      names.refresh_token || 'RefreshToken',
      configs.refresh_token_cookie_config ?? {},
      domain,
    ),
    nonce: new CookieTemplate(names.oauth_nonce || 'OauthNonce', configs.oauth_nonce_cookie_config ?? {}, domain),
    verifier: new CookieTemplate(
      names.code_verifier || 'CodeVerifier',
      configs.code_verifier_cookie_config ?? {},
      domain,
    ),
  };
}

function compileFormatAt(text: string, where: string): Format {
  try {
    return compileFormat(text);
  } catch (error) {
    throw mistake((error as Error).message, where);
  }
}

/** Whole seconds. */
function seconds(duration: string | undefined, otherwise: number): number {
  return duration === undefined ? otherwise : Math.floor(durationMs(duration) / 1000);
}

function mistake(message: string, where: string): BatonError {
  return new BatonError('CONFIG_INVALID', message, { where });
}
