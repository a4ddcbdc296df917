// The fields that the oauth2 filter obeys: all.

import { byValue, type ImplementedTable, obeyed } from '../../../sdk.js';

const OAUTH = 'envoy.extensions.filters.http.oauth2.v3';

export const OAUTH_FIELDS: ImplementedTable = {
  [`${OAUTH}.OAuth2`]: obeyed('config'),
  [`${OAUTH}.OAuth2PerRoute`]: obeyed('config'),
  [`${OAUTH}.OAuth2Config`]: {
    ...obeyed('token_endpoint', 'retry_policy', 'authorization_endpoint', 'end_session_endpoint'),
    ...obeyed('post_logout_redirect_uri', 'credentials', 'redirect_uri', 'redirect_path_matcher', 'signout_path'),
    ...obeyed('forward_bearer_token', 'forward_id_token', 'preserve_authorization_header', 'pass_through_matcher'),
    ...obeyed('auth_scopes', 'resources', 'use_refresh_token', 'default_expires_in', 'deny_redirect_matcher'),
    ...obeyed('default_refresh_token_expires_in', 'disable_id_token_set_cookie', 'disable_access_token_set_cookie'),
    ...obeyed('disable_refresh_token_set_cookie', 'cookie_configs', 'stat_prefix', 'csrf_token_expires_in'),
    ...obeyed('code_verifier_token_expires_in', 'disable_token_encryption', 'allow_failed_matcher'),
    ...obeyed('original_request_uri', 'allowed_redirect_domains', 'use_access_token_expiry_for_id_token_cookie'),
    ...obeyed('private_key_jwt_config', 'token_cookie_chunking'),
    auth_type: byValue({ URL_ENCODED_BODY: true, BASIC_AUTH: true, TLS_CLIENT_AUTH: true, PRIVATE_KEY_JWT: true }),
  },
  [`${OAUTH}.OAuth2Credentials`]: obeyed('client_id', 'token_secret', 'hmac_secret', 'cookie_names', 'cookie_domain'),
  [`${OAUTH}.OAuth2Credentials.CookieNames`]: {
    ...obeyed(
      'bearer_token',
      'oauth_hmac',
      'oauth_expires',
      'id_token',
      'refresh_token',
      'oauth_nonce',
      'code_verifier',
    ),
  },
  [`${OAUTH}.CookieConfigs`]: {
    ...obeyed('bearer_token_cookie_config', 'oauth_hmac_cookie_config', 'oauth_expires_cookie_config'),
    ...obeyed('id_token_cookie_config', 'refresh_token_cookie_config', 'oauth_nonce_cookie_config'),
    ...obeyed('code_verifier_cookie_config'),
  },
  [`${OAUTH}.CookieConfig`]: {
    ...obeyed('path', 'partitioned'),
    same_site: byValue({ DISABLED: true, STRICT: true, LAX: true, NONE: true }),
  },
  [`${OAUTH}.PrivateKeyJwtConfig`]: {
    ...obeyed('assertion_lifetime', 'assertion_audience'),
    signing_algorithm: byValue({ RS256: true, RS384: true, RS512: true, ES256: true, ES384: true, ES512: true }),
  },
  [`${OAUTH}.OAuth2TokenForwarding`]: obeyed('header'),
  [`${OAUTH}.PostLogoutRedirectUri`]: obeyed('disabled', 'uri'),
  [`${OAUTH}.TokenCookieChunking`]: obeyed('max_cookie_size', 'max_chunks'),
  'envoy.type.matcher.v3.PathMatcher': obeyed('path'),
};
