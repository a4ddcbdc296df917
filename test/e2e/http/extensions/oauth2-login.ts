// A proxy whose listeners have the oauth2 filter, a token endpoint, and a browser that keeps cookies.

import type { Test } from 'tap';
import type { ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  type HttpAnswer,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

export const OAUTH = 'type.googleapis.com/envoy.extensions.filters.http.oauth2.v3.OAuth2';
export const HMAC_SECRET = 'hmac-secret';

/** What the token endpoint answers; undefined: it closes the connection. */
export type TokenAnswer = { status?: number; body: object | string } | undefined;

export interface TokenRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface LoginOptions {
  /** Parts of OAuth2Config, by listener; undefined: a filter without configuration. */
  readonly listeners: Readonly<Record<string, Config | undefined>>;
  /** Parts of the OAuth2Config of the path /route. */
  readonly route?: Config;
  readonly tokenSecret?: string;
  readonly extra?: Config;
}

/** Returns a usable OAuth2Config. */
export function oauthConfig(parts: Config = {}): Config {
  return {
    token_endpoint: { cluster: 'token', uri: 'http://token.test/oauth/token', timeout: '5s' },
    authorization_endpoint: 'https://auth.test/authorize?x=1',
    redirect_uri: 'http://%REQ(:authority)%/callback',
    redirect_path_matcher: { path: { exact: '/callback' } },
    signout_path: { path: { exact: '/signout' } },
    credentials: { client_id: 'client 1', token_secret: { name: 'token' }, hmac_secret: { name: 'hmac' } },
    auth_scopes: ['openid', 'a b'],
    resources: ['http://r/?a=1'],
    ...parts,
  };
}

export function generic(name: string, text: string): Config {
  return { name, generic_secret: { secret: { inline_string: text } } };
}

export async function startLogin(t: Test, program: ProxyProgram, options: LoginOptions) {
  const log = `${tempDir(t)}/log`;
  const requests: TokenRequest[] = [];
  const state: { answer: TokenAnswer } = {
    answer: { body: { access_token: 'ACC', id_token: 'IDT', refresh_token: 'REF', expires_in: 3600 } },
  };
  const endpoint = await startUpstream(t, (request, response) => {
    let body = '';
    request.setEncoding('latin1').on('data', (part: string) => {
      body += part;
    });
    request.on('end', () => {
      requests.push({ path: request.url!, headers: request.headers as Record<string, string>, body });
      const { answer } = state;
      if (answer === undefined) return void request.socket.destroy();
      response.writeHead(answer.status ?? 200);
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    });
  });
  const host = await startEchoUpstream(t);
  const typed_per_filter_config = {
    login: { '@type': `${OAUTH}PerRoute`, config: oauthConfig(options.route ?? {}) },
  };
  const routes = [
    ...(options.route ? [{ match: { prefix: '/route' }, route: { cluster: 'host' }, typed_per_filter_config }] : []),
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const listeners = Object.entries(options.listeners).map(([name, parts]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS%\n')],
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [
        { name: 'login', typed_config: { '@type': OAUTH, ...(parts && { config: oauthConfig(parts) }) } },
        ROUTER_FILTER,
      ],
    }),
  );
  const config = bootstrap({
    listeners,
    clusters: [
      staticCluster('host', host.port),
      staticCluster('token', endpoint.port),
      { name: 'empty', type: 'STATIC', load_assignment: { cluster_name: 'empty' } },
    ],
    extra: { node: { id: 'a', cluster: 'b' }, ...options.extra },
  });
  const secrets = [generic('token', options.tokenSecret ?? 'tok=sec&ret'), generic('hmac', HMAC_SECRET)];
  Object.assign(config['static_resources'] as Config, { secrets });
  const baton = await startBaton(t, { ...program, args: ['--file-flush-interval-msec', '50'], config });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(options.listeners)) ports[name] = await baton.listenerPort(name);
  const on = (listener: string, path: string, cookies: Cookies = {}, headers: Record<string, string> = {}) => {
    const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`);
    const own = cookie.length === 0 ? {} : { cookie: cookie.join('; ') };
    return httpRequest(ports[listener]!, path, { headers: { host: 'app.test', ...own, ...headers } });
  };
  const lines = (count: number) =>
    waitFor(() => (logLines(log).length === count ? logLines(log) : undefined), { what: `${count} lines` });
  /** Logs in. Returns both responses, and the cookies that the browser has then. */
  const login = async (listener: string, path = '/page', headers: Record<string, string> = {}) => {
    const begun = await on(listener, path, {}, headers);
    const flow = cookiesOf(begun);
    const state = new URL(begun.headers['location'] as string).searchParams.get('state')!;
    const ended = await on(listener, `/callback?code=CO%20DE&state=${state}`, flow, headers);
    return { begun, ended, flow, state, session: cookiesOf(ended) };
  };
  return { baton, lines, login, on, requests, state };
}

export type Cookies = Readonly<Record<string, string>>;

export function fieldsOf(answer: HttpAnswer): string[] {
  return [answer.headers['set-cookie'] ?? []].flat() as string[];
}

/** Returns the cookies that a response sets, without those that it deletes. */
export function cookiesOf(answer: HttpAnswer): Cookies {
  const pairs = fieldsOf(answer).map((field) => /^([^=]*)=([^;]*)/.exec(field)!.slice(1) as [string, string]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== 'deleted'));
}

/** Returns the cookies that the host has got, in order of their names. */
export function hostCookies(answer: HttpAnswer): string[] {
  const { cookie = '' } = hostHeaders(answer);
  return cookie === '' ? [] : cookie.split('; ').sort();
}

export function hostHeaders(answer: HttpAnswer): Record<string, string> {
  return (JSON.parse(answer.body) as { headers: Record<string, string> }).headers;
}
