// One configuration of the filter on a worker: that of the filter itself, or that of a route.

import type { OAuth2Config } from '../../../../config/generated/api.js';
import type { GenericSecret, Memory, RuntimeFlag, WorkerContext } from '../../../sdk.js';
import { CookieKeys, type Decrypted, type DecryptFailure } from './cipher.js';
import { ClientKey } from './client-assertion.js';
import { compileRules, type OAuthRules } from './rules.js';
import type { OAuthStats } from './stats.js';
import type { CallContext } from './token-call.js';

export class OAuthPlace {
  readonly rules: OAuthRules;
  readonly stats: OAuthStats;
  readonly context: CallContext & { readonly memory: Memory };
  /** Undefined: the client has none. */
  readonly clientSecret: GenericSecret | undefined;
  readonly clientKey = new ClientKey();
  readonly #hmacSecret: GenericSecret;
  readonly #usesGcm: RuntimeFlag;
  readonly #allowsCbc: RuntimeFlag;
  #keys: CookieKeys | undefined;

  constructor(config: OAuth2Config, context: WorkerContext, stats: OAuthStats) {
    const { hmac_secret: hmac, token_secret: token } = config.credentials!;
    this.rules = compileRules(config, '');
    this.stats = stats;
    this.context = context;
    this.clientSecret =
      token === undefined || config.auth_type === 'TLS_CLIENT_AUTH' ? undefined : context.secrets.generic(token);
    this.#hmacSecret = context.secrets.generic(hmac!);
    const { runtime } = context;
    this.#usesGcm = runtime.flag({ runtime_key: USE_GCM, default_value: false }, false);
    this.#allowsCbc = runtime.flag({ runtime_key: ALLOW_CBC, default_value: true }, true);
  }

  /** The keys of the current secret; undefined while a secret is missing. */
  keys(): CookieKeys | undefined {
    const { value } = this.#hmacSecret;
    if (value === '' || this.clientSecret?.value === '') return undefined;
    if (this.#keys?.secret !== value) this.#keys = new CookieKeys(value);
    return this.#keys;
  }

  encrypt(text: string, keys: CookieKeys): string {
    return keys.encrypt(text, this.#usesGcm.value);
  }

  decrypt(text: string, keys: CookieKeys): Decrypted | DecryptFailure {
    const result = keys.decrypt(text, this.#allowsCbc.value);
    if ('isLegacy' in result && result.isLegacy) this.stats.oauth_legacy_cbc_decrypt.increment();
    return result;
  }
}

const USE_GCM = 'envoy.reloadable_features.oauth2_use_gcm_encryption';
const ALLOW_CBC = 'envoy.reloadable_features.oauth2_legacy_cbc_decrypt_compat';
