// A token that a worker fetches by the client credentials grant (RFC 6749, 4.4), before it expires again and again.

import type { Oauth2OAuth2 as OAuth2 } from '../../../../config/generated/api.js';
import {
  byteText,
  durationMs,
  type GenericSecret,
  getLogger,
  headerKey,
  MAX_TIMER_MS,
  onOneLine,
  type Scope,
  Timer,
} from '../../../sdk.js';
import { type CallContext, TokenCall, type TokenCallEvents, type TokenEndpoint } from '../oauth2/token-call.js';
import { tokenEndpoint } from '../oauth2/token-endpoint.js';
import { errorText, parseTokens } from '../oauth2/token-response.js';
import { encodeQueryValue } from '../oauth2/urls.js';
import type { Credential } from './credential.js';
import { TokenStats } from './stats.js';

const logger = getLogger('credential_injector');
const { at } = TokenStats;
const OK = 200;
const RETRY_MS = 2000;
/** A token that expires at once is not fetched without a pause. */
const MIN_REFETCH_MS = 1000;

export class ClientCredentials implements Credential, TokenCallEvents {
  readonly key = headerKey('authorization');
  #value = '';
  readonly #endpoint: TokenEndpoint;
  readonly #context: CallContext;
  readonly #stats: Scope;
  /** Undefined: the client's certificate authenticates it. */
  readonly #secret: GenericSecret | undefined;
  readonly #client: string;
  readonly #parameters: string;
  readonly #retryMs: number;
  readonly #timer = new Timer<ClientCredentials>(this, (credentials) => credentials.#fetch());
  #call: TokenCall | undefined;
  #isClosed = false;

  /** `secret`: of the client, unless its certificate authenticates it. */
  constructor(config: OAuth2, secret: GenericSecret | undefined, context: CallContext, stats: Scope) {
    this.#endpoint = tokenEndpoint(config.token_endpoint!, 'token_endpoint');
    this.#context = context;
    this.#stats = stats;
    this.#secret = secret;
    this.#client = encoded(config.client_credentials?.client_id ?? '');
    this.#parameters = parametersOf(config);
    this.#retryMs = durationMs(config.token_fetch_retry_interval, RETRY_MS);
    // The clusters are those of the running configuration only after this turn.
    this.#fetchIn(1);
  }

  get value(): string {
    return this.#value;
  }

  close(): void {
    this.#isClosed = true;
    this.#context.timers.cancel(this.#timer);
    this.#call?.cancel();
  }

  onTokenAnswer(status: number, body: Buffer, failure?: string): void {
    this.#call = undefined;
    if (status !== OK) {
      this.#stats.increment(at.token_fetch_failed_on_bad_response_code);
      return this.#failed(`the token endpoint: ${failure ?? errorText(status, body)}`);
    }
    const tokens = parseTokens(body, 0);
    if ('reason' in tokens || tokens.access === '') {
      this.#stats.increment(at.token_fetch_failed_on_bad_token);
      return this.#failed('reason' in tokens ? tokens.reason : 'the access token is empty');
    }
    this.#stats.increment(at.token_fetched);
    this.#value = `Bearer ${tokens.access}`;
    this.#fetchIn(Math.max(MIN_REFETCH_MS, tokens.expiresInSeconds * 500));
  }

  #fetch(): void {
    if (this.#context.calls.reference(this.#endpoint.cluster).current === undefined) {
      this.#stats.increment(at.token_fetch_failed_on_cluster_not_found);
      return this.#failed(`there is no cluster '${this.#endpoint.cluster}'`);
    }
    const secret = this.#secret?.value;
    if (secret === '') {
      this.#stats.increment(at.token_fetch_failed_on_client_secret);
      return this.#failed('the client has no secret');
    }
    this.#stats.increment(at.token_requested);
    const client = secret === undefined ? '' : `&client_secret=${encodeQueryValue(secret)}`;
    const form = `grant_type=client_credentials&client_id=${this.#client}${client}${this.#parameters}`;
    this.#call = undefined;
    const call = new TokenCall(this.#endpoint, this.#context, { form, authorization: undefined }, this);
    if (!call.isOver) this.#call = call;
  }

  /** The token that was fetched before stays in use. */
  #failed(reason: string): void {
    logger.warning(`no token is fetched: ${onOneLine(reason)}`);
    this.#fetchIn(this.#retryMs);
  }

  #fetchIn(delayMs: number): void {
    if (!this.#isClosed) this.#context.timers.reschedule(this.#timer, Math.min(delayMs, MAX_TIMER_MS));
  }
}

function parametersOf({ endpoint_params: parameters = [], scopes = [] }: OAuth2): string {
  const scope = scopes.length === 0 ? '' : `&scope=${encoded(scopes.join(' '))}`;
  return scope + parameters.map(({ name = '', value = '' }) => `&${encoded(name)}=${encoded(value)}`).join('');
}

function encoded(text: string): string {
  return encodeQueryValue(byteText(text));
}
