// The oauth2 filter of one request: lets users pass who are logged in, and leads all others through a login.

import {
  getLogger,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  matchesAny,
  onOneLine,
  ResponseFlag,
  requestScheme,
  type StreamControl,
} from '../../../sdk.js';
import { chunkDeletions } from './chunks.js';
import { type CookieKeys, newVerifier, randomFlow } from './cipher.js';
import { clientAssertion } from './client-assertion.js';
import { readCookies, writeCookies } from './cookies.js';
import { type Callback, checkCallback, csrfToken, encodeState } from './login-state.js';
import type { OAuthPlace } from './place.js';
import { RequestCookies } from './request-cookies.js';
import { sessionFields } from './session-fields.js';
import { TokenCall, type TokenCallEvents } from './token-call.js';
import { codeForm, refreshForm } from './token-forms.js';
import { errorText, parseTokens, type Tokens } from './token-response.js';
import { encodeQueryValue, isAllowed, parseUrl } from './urls.js';

const logger = getLogger('oauth2');

export class OAuthFilter implements HttpFilter, TokenCallEvents {
  readonly #stream: StreamControl;
  readonly #place: OAuthPlace;
  #headers!: HeaderBlock;
  #keys!: CookieKeys;
  #host = '';
  #cookies!: RequestCookies;
  /** The flow whose cookies are deleted with the response; '': none. */
  #flow = '';
  #callback: Callback | undefined;
  #call: TokenCall | undefined;
  /** The filter has paused the request. */
  #isWaiting = false;
  /** Set-Cookie fields for the response of a request whose tokens were refreshed. */
  #fields: readonly string[] | undefined;

  constructor(stream: StreamControl, place: OAuthPlace) {
    this.#stream = stream;
    this.#place = place;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { rules, stats } = this.#place;
    this.#headers = headers;
    removeStatus(headers);
    const { idTokenField } = rules;
    if (idTokenField !== undefined && idTokenField.name !== AUTHORIZATION.name) headers.remove(idTokenField);
    if (rules.passThrough !== undefined && matchesAny(rules.passThrough, headers)) {
      stats.oauth_passthrough.increment();
      return HeadersStatus.Continue;
    }
    const keys = this.#place.keys();
    if (keys === undefined) return this.#unavailable('OAuth2 secrets are not ready');
    this.#keys = keys;
    this.#host = headers.get(HOST) ?? '';
    this.#cookies = new RequestCookies(readCookies(headers), this.#place, keys, this.#host);
    if (this.#cookies.isChanged) writeCookies(headers, this.#cookies.current);
    if (!rules.preservesAuthorization) headers.remove(AUTHORIZATION);
    if (rules.isSignOut.matches(headers)) return this.#signOut();
    const isRedirect = rules.isRedirect.matches(headers);
    if (this.#cookies.isLoggedIn(Math.floor(this.#place.context.clock.realtimeMs / 1000))) {
      stats.oauth_success.increment();
      return isRedirect ? this.#repeatedCallback() : this.#pass();
    }
    if (isRedirect) return this.#exchangeCode();
    if (rules.usesRefreshToken && this.#cookies.refresh !== '') return this.#refresh();
    return this.#login('Unauthorized', `: ${headers.pathText()}`);
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    for (const field of this.#fields ?? []) headers.add(SET_COOKIE, field);
    this.#fields = undefined;
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#call = undefined;
  }

  // ── A user who is logged in ──────────────────────────────────────────────────────────────────────────────────────

  #pass(): HeadersStatus {
    this.#forward(this.#cookies.access, this.#cookies.id);
    this.#cookies.removeFlow();
    this.#writeCookies();
    return HeadersStatus.Continue;
  }

  /** Another request of the browser has finished the login. */
  #repeatedCallback(): HeadersStatus {
    const { isRedirect } = this.#place.rules;
    const callback = this.#checkCallback();
    if (callback === undefined) return HeadersStatus.StopIteration;
    const { target } = parseUrl(callback.url)!;
    if (isRedirect.matchesText(target, this.#place.context.memory))
      return this.#deny(`State url query params matches the redirect path matcher: ${target}`);
    return this.#redirect(callback.url, this.#flowDeletions(), 'oauth.race_redirect');
  }

  #signOut(): HeadersStatus {
    const { clientId, cookies, endSession, postLogout } = this.#place.rules;
    const { sent } = this.#cookies;
    const fields = [cookies.hmac, cookies.bearer, cookies.id, cookies.refresh, cookies.expires].map((cookie) =>
      cookie.deletion(),
    );
    for (const name of sent.keys()) {
      if (cookies.nonce.isOwn(name)) fields.push(cookies.nonce.deletion(name));
      else if (cookies.verifier.isOwn(name)) fields.push(cookies.verifier.deletion(name));
    }
    for (const cookie of [cookies.bearer, cookies.id, cookies.refresh]) fields.push(...chunkDeletions(cookie, sent, 0));
    const site = `${requestScheme(this.#headers) || 'http'}://${this.#host}/`;
    if (endSession === '') return this.#redirect(site, fields, 'oauth.sign_out');
    let url = `${endSession}?id_token_hint=${this.#cookies.id}&client_id=${clientId}`;
    if (postLogout !== null) {
      const uri = postLogout === undefined ? site : postLogout.text(this.#stream.info);
      url += `&post_logout_redirect_uri=${encodeQueryValue(uri)}`;
    }
    return this.#redirect(url, fields, 'oauth.sign_out');
  }

  // ── Requests to the token endpoint ───────────────────────────────────────────────────────────────────────────────

  /** The authorization server has sent the browser back with a code. */
  #exchangeCode(): HeadersStatus {
    const { cookies, redirectUri } = this.#place.rules;
    this.#callback = this.#checkCallback();
    if (this.#callback === undefined) return HeadersStatus.StopIteration;
    const { code, flow } = this.#callback;
    const encrypted = this.#cookies.ofFlow(cookies.verifier, flow);
    if (encrypted === undefined) return this.#deny('Code verifier cookie is missing in the request');
    const verifier = this.#place.decrypt(encrypted, this.#keys);
    if ('failure' in verifier)
      return this.#deny(`Failed to decrypt code verifier: ${encrypted}, error: ${verifier.failure}`);
    const uri = redirectUri.text(this.#stream.info);
    return this.#callEndpoint((credential) => codeForm(this.#place.rules, credential, code, uri, verifier.text));
  }

  #refresh(): HeadersStatus {
    return this.#callEndpoint((credential) => refreshForm(this.#place.rules, credential, this.#cookies.refresh));
  }

  /** `form` receives the client's secret, or its signed assertion. */
  #callEndpoint(form: (credential: string) => string): HeadersStatus {
    const { clientKey, clientSecret, context, rules } = this.#place;
    const { calls } = context;
    if (calls.reference(rules.endpoint.cluster).current === undefined)
      return this.#fail('Token endpoint cluster not found');
    let credential = clientSecret?.value ?? '';
    if (rules.authType === 'PRIVATE_KEY_JWT') {
      const now = Math.floor(context.clock.realtimeMs / 1000);
      const assertion = clientAssertion(rules.clientId, clientKey.of(credential), rules.assertion, now);
      if ('failure' in assertion) return this.#fail(`Failed to obtain client credential: ${assertion.failure}`);
      credential = assertion.token;
    }
    const authorization =
      rules.authType === 'BASIC_AUTH'
        ? `Basic ${Buffer.from(`${rules.clientId}:${credential}`, 'latin1').toString('base64')}`
        : undefined;
    this.#stream.pauseRequest();
    this.#isWaiting = true;
    this.#call = new TokenCall(rules.endpoint, context, { form: form(credential), authorization }, this);
    return HeadersStatus.StopIteration;
  }

  onTokenAnswer(status: number, body: Buffer, failure?: string): void {
    this.#call = undefined;
    this.#stream.run(() => {
      const result = this.#takeAnswer(status, body, failure);
      if (result === HeadersStatus.Continue) this.#stream.continueDecoding();
      if (this.#isWaiting) this.#stream.resumeRequest();
      this.#isWaiting = false;
    });
  }

  #takeAnswer(status: number, body: Buffer, failure: string | undefined): HeadersStatus {
    if (status !== OK) {
      const why = failure === undefined ? errorText(status, body) : `response code: ${status}, ${failure}`;
      return this.#callback === undefined ? this.#refreshFailed(why) : this.#fail('Failed to get access token', why);
    }
    const tokens = parseTokens(body, this.#place.rules.defaultExpiresIn);
    if ('reason' in tokens) return this.#fail(tokens.reason, tokens.extra);
    return this.#callback === undefined ? this.#refreshed(tokens) : this.#loggedIn(tokens, this.#callback);
  }

  #loggedIn(tokens: Tokens, { url }: Callback): HeadersStatus {
    const session = sessionFields(tokens, '', this.#cookies, this.#place, this.#keys);
    if (session === undefined) return this.#tooLarge();
    this.#place.stats.oauth_success.increment();
    return this.#redirect(url, [...session.fields, ...this.#flowDeletions()], 'oauth.logged_in');
  }

  #refreshed(tokens: Tokens): HeadersStatus {
    const { stats } = this.#place;
    const session = sessionFields(tokens, this.#cookies.refresh, this.#cookies, this.#place, this.#keys);
    if (session === undefined) return this.#tooLarge();
    this.#fields = session.fields;
    this.#cookies.replace(session.access, session.id);
    this.#forward(session.access, session.id);
    stats.oauth_refreshtoken_success.increment();
    stats.oauth_success.increment();
    this.#writeCookies();
    return HeadersStatus.Continue;
  }

  #refreshFailed(why: string): HeadersStatus {
    if (logger.isDebug) logger.debug(`failed to refresh the access token: ${onOneLine(why)}`);
    this.#place.stats.oauth_refreshtoken_failure.increment();
    return this.#login('Failed to refresh the access token', '');
  }

  #tooLarge(): HeadersStatus {
    this.#place.stats.oauth_token_cookie_oversized.increment();
    return this.#unavailable('OAuth token exceeds the cookie chunk limit');
  }

  // ── A user who is not logged in ──────────────────────────────────────────────────────────────────────────────────

  /** Passes the request without tokens, refuses it, or leads the user to the authorization server. */
  #login(why: string, path: string): HeadersStatus {
    const { allowFailed, denyRedirect } = this.#place.rules;
    if (allowFailed !== undefined && matchesAny(allowFailed, this.#headers))
      return this.#passFailed(`${why}, and forwarding as unauthorized because OAuth failure is allowed${path}`);
    if (denyRedirect !== undefined && matchesAny(denyRedirect, this.#headers))
      return this.#deny(`${why}, and redirecting to OAuth server is not allowed${path}`);
    return this.#toAuthorizationServer();
  }

  #toAuthorizationServer(): HeadersStatus {
    const { rules, stats } = this.#place;
    const { authorization, cookies, domains } = rules;
    const scheme = requestScheme(this.#headers) === 'http' ? 'http' : 'https';
    const base = rules.originalUri?.text(this.#stream.info) ?? `${scheme}://${this.#host}`;
    if (!isAllowed(base, domains))
      return this.#deny(`authority or original_request_uri failed domain allow-list validation: ${base}`);
    const redirectUri = rules.redirectUri.text(this.#stream.info);
    if (!isAllowed(redirectUri, domains))
      return this.#deny(`redirect_uri failed domain allow-list validation: ${redirectUri}`);
    const flow = randomFlow();
    const token = csrfToken(flow, this.#keys);
    const { challenge, verifier } = newVerifier();
    const encrypted = this.#place.encrypt(verifier, this.#keys);
    const query = rules.authorizationQuery.with({
      state: encodeState(base + this.#headers.pathText(), token, flow),
      redirect_uri: encodeQueryValue(redirectUri),
      code_challenge: challenge,
    });
    const path = authorization.target.replace(/\?.*/s, '');
    const url = `${authorization.scheme}://${authorization.authority}${path}${query}${rules.resources}`;
    // Older versions of Envoy know only the cookies without a flow.
    const fields = [
      cookies.nonce.set(token, rules.nonceMaxAge, cookies.nonce.ofFlow(flow)),
      cookies.nonce.set(token, rules.nonceMaxAge),
      cookies.verifier.set(encrypted, rules.verifierMaxAge, cookies.verifier.ofFlow(flow)),
      cookies.verifier.set(encrypted, rules.verifierMaxAge),
    ];
    stats.oauth_unauthorized_rq.increment();
    return this.#redirect(url, fields, 'oauth.missing_credentials');
  }

  /** Called when a request to the token endpoint fails other than by its status. */
  #fail(reason: string, extra = ''): HeadersStatus {
    const { allowFailed, isRedirect } = this.#place.rules;
    const isAllowedToFail = allowFailed !== undefined && !isRedirect.matches(this.#headers);
    if (isAllowedToFail && matchesAny(allowFailed, this.#headers)) return this.#passFailed(reason);
    return this.#deny(extra === '' ? reason : `${reason}: ${extra}`);
  }

  #passFailed(reason: string): HeadersStatus {
    this.#cookies.removeTokens();
    this.#writeCookies();
    this.#headers.set(STATUS, 'failed');
    this.#headers.set(FAILURE_REASON, reason);
    this.#place.stats.oauth_allow_failed_passthrough.increment();
    return HeadersStatus.Continue;
  }

  #checkCallback(): Callback | undefined {
    const { cookies, domains } = this.#place.rules;
    const nonce = (flow: string) => this.#cookies.ofFlow(cookies.nonce, flow);
    const checked = checkCallback(this.#headers.pathText(), { keys: this.#keys, domains, nonce });
    this.#flow = checked.flow;
    if (!('reason' in checked)) return checked;
    this.#deny(checked.reason);
    return undefined;
  }

  // ── Parts of all ─────────────────────────────────────────────────────────────────────────────────────────────────

  #forward(access: string, id: string): void {
    const { forwardsBearer, idTokenField } = this.#place.rules;
    if (forwardsBearer && access !== '') this.#headers.set(AUTHORIZATION, `Bearer ${access}`);
    if (idTokenField === undefined || id === '') return;
    this.#headers.set(idTokenField, idTokenField.name === AUTHORIZATION.name ? `Bearer ${id}` : id);
  }

  #writeCookies(): void {
    if (this.#cookies.sent.size > 0) writeCookies(this.#headers, this.#cookies.current);
  }

  #flowDeletions(): string[] {
    const { nonce, verifier } = this.#place.rules.cookies;
    return [nonce, verifier].flatMap((cookie) => [
      ...(this.#flow === '' ? [] : [cookie.deletion(cookie.ofFlow(this.#flow))]),
      cookie.deletion(),
    ]);
  }

  #redirect(url: string, fields: readonly string[], details: string): HeadersStatus {
    this.#stream.sendLocalReply({
      status: FOUND,
      body: '',
      details,
      flags: ResponseFlag.None,
      isVerbatim: true,
      editHeaders(headers) {
        for (const field of fields) headers.add(SET_COOKIE, field);
        headers.set(LOCATION, url);
      },
    });
    return HeadersStatus.StopIteration;
  }

  #deny(reason: string): HeadersStatus {
    const fields = this.#flow === '' ? [] : this.#flowDeletions();
    logger.warning(`Responding with 401 Unauthorized. Cause: ${onOneLine(reason)}`);
    this.#place.stats.oauth_failure.increment();
    this.#stream.sendLocalReply({
      status: UNAUTHORIZED,
      body: 'OAuth flow failed.',
      details: withoutSpace(reason),
      flags: ResponseFlag.None,
      editHeaders(headers) {
        for (const field of fields) headers.add(SET_COOKIE, field);
      },
    });
    return HeadersStatus.StopIteration;
  }

  #unavailable(reason: string): HeadersStatus {
    logger.warning(`Responding with 503 Service Unavailable. Cause: ${reason}`);
    this.#place.stats.oauth_failure.increment();
    this.#stream.sendLocalReply({
      status: UNAVAILABLE,
      body: 'Service Unavailable',
      details: withoutSpace(reason),
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }
}

/** Removes what only this filter may set. Also without a configuration. */
export function removeStatus(headers: HeaderBlock): void {
  headers.remove(STATUS);
  headers.remove(FAILURE_REASON);
}

/** As Envoy does with white space. Clients choose parts of some texts: control characters must not reach logs either. */
function withoutSpace(text: string): string {
  return text.replace(/[\0-\x20\x7f]/g, '_');
}

const OK = 200;
const FOUND = 302;
const UNAUTHORIZED = 401;
const UNAVAILABLE = 503;
const AUTHORIZATION = headerKey('authorization');
const HOST = headerKey('host');
const LOCATION = headerKey('location');
const SET_COOKIE = headerKey('set-cookie');
const STATUS = headerKey('x-envoy-oauth-status');
const FAILURE_REASON = headerKey('x-envoy-oauth-failure-reason');
