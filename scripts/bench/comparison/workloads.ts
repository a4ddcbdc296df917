// The workloads: each one loads one of a proxy's ports in a certain way.

import { TOKEN } from './token.js';

/** HTTPS with an ECDSA key, without resumption with keys of both kinds, and with TLS to the host too. */
export type SecurePort = 'https' | 'httpsEcdsaOnce' | 'httpsRsaOnce' | 'reencrypted';

/** HTTP/2 to a host of HTTP/1.1, without and with TLS; and HTTP/2 without TLS to a host of HTTP/2, and to one of gRPC. */
export type Http2Port = 'h2c' | 'h2' | 'h2ToH2' | 'grpc';

/** A filter that reads a request header and sets another, in a script and built in; and a span of each request for a collector. */
export type FilterPort = 'script' | 'mutation' | 'traced';

/**
 * One filter before the router: Lua that does the same, a policy that denies other requests, a token, services that allow all, a limit that is not
 * reached, and gzip; or a route whose metadata selects a subset of its cluster.
 */
export const POLICY_PORTS = [
  'lua',
  'rbac',
  'jwt',
  'extAuthz',
  'rateLimit',
  'localRateLimit',
  'gzip',
  'subset',
] as const;
export type PolicyPort = (typeof POLICY_PORTS)[number];

export interface Workload {
  name: string;
  /** Which port of the proxy: HTTP or a bare TCP proxy, without or with an access log; or one with TLS, HTTP/2 or a filter. */
  protocol: 'http' | 'tcp' | SecurePort | Http2Port | FilterPort | PolicyPort;
  /** Each request resumes a session on a new connection. */
  resumes: boolean;
  logged: boolean;
  path: string;
  /** With `Connection: close` each request uses a new connection. */
  headers: readonly string[];
  connections: number;
  /** Streams of each HTTP/2 connection at a time; 0: another protocol. */
  streams: number;
  postBytes: number;
  /** The divisor of the CPU time: requests, or megabytes (10^6) for large responses. */
  unit: 'requests' | 'MB';
}

/** The headers of curl. wrk adds Host. */
const CURL = ['User-Agent: curl/8.5.0', 'Accept: */*'];

/** The headers of a browser for a page: a head of about 550 bytes. */
const BROWSER = [
  'Connection: keep-alive',
  'sec-ch-ua: "Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"',
  'sec-ch-ua-mobile: ?0',
  'sec-ch-ua-platform: "Linux"',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'Sec-Fetch-Site: same-origin',
  'Sec-Fetch-Mode: navigate',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: en-GB,en;q=0.9',
  'Cookie: session=6f1d2c3b4a59687f; theme=dark',
];

const CLOSE = 'Connection: close';

const CONNECTIONS = [8, 64, 512];

/** TLS 1.3, except for resumed-1: its tool speaks 1.2. wrk resumes its sessions where it can. */
const SECURE: readonly Workload[] = [
  workload('https-64', false, { protocol: 'https', connections: 64 }),
  workload('https-handshake-p256-16', false, {
    protocol: 'httpsEcdsaOnce',
    headers: [...CURL, CLOSE],
    connections: 16,
  }),
  workload('https-handshake-rsa-16', false, { protocol: 'httpsRsaOnce', headers: [...CURL, CLOSE], connections: 16 }),
  workload('https-resumed-16', false, { protocol: 'https', headers: [...CURL, CLOSE], connections: 16 }),
  workload('https-resumed-1', false, { protocol: 'https', headers: [CLOSE], resumes: true, connections: 1 }),
  workload('https-download-100m-4', false, { protocol: 'https', path: '/100m', connections: 4, unit: 'MB' }),
  workload('https-to-https-64', false, { protocol: 'reencrypted', connections: 64 }),
];

/** nghttpd takes the content type from the name. */
export const GRPC_PATH = '/bench.Service/Unary.grpc';
/** A message of 11 bytes with its prefix. */
export const GRPC_MESSAGE = '\0\0\0\0\x0bhello world';

export const GRPC_STREAM_PATH = '/bench.Service/Stream.grpc';
/** 100 messages of 1 KiB. */
export const GRPC_STREAM = `\0\0\0\x04\0${'x'.repeat(1024)}`.repeat(100);

/** As `h2load -c 16 -m 32`, and one request at a time. */
const HTTP2: readonly Workload[] = [
  workload('h2c-16x32', false, { protocol: 'h2c', connections: 16, streams: 32 }),
  workload('h2c-1x1', false, { protocol: 'h2c', connections: 1, streams: 1 }),
  workload('h2-tls-16x32', false, { protocol: 'h2', connections: 16, streams: 32 }),
  workload('h2c-to-h2c-16x32', false, { protocol: 'h2ToH2', connections: 16, streams: 32 }),
  workload('grpc-unary-16x32', false, { protocol: 'grpc', path: GRPC_PATH, connections: 16, streams: 32 }),
  workload('grpc-stream-16x4', false, { protocol: 'grpc', path: GRPC_STREAM_PATH, connections: 16, streams: 4 }),
];

const FILTERS: readonly Workload[] = [
  workload('filter-built-in-64', false, { protocol: 'mutation', connections: 64 }),
  workload('filter-script-64', false, { protocol: 'script', connections: 64 }),
  workload('traced-64', false, { protocol: 'traced', connections: 64 }),
  workload('lua-64', false, { protocol: 'lua', connections: 64 }),
  workload('rbac-64', false, { protocol: 'rbac', connections: 64 }),
  workload('jwt-64', false, { protocol: 'jwt', headers: [...CURL, `Authorization: Bearer ${TOKEN}`], connections: 64 }),
  workload('ext-authz-64', false, { protocol: 'extAuthz', connections: 64 }),
  workload('rate-limit-64', false, { protocol: 'rateLimit', connections: 64 }),
  workload('local-rate-limit-64', false, { protocol: 'localRateLimit', connections: 64 }),
  workload('gzip-10k-64', false, {
    protocol: 'gzip',
    path: '/10k',
    headers: [...CURL, 'Accept-Encoding: gzip'],
    connections: 64,
  }),
  workload('subset-64', false, { protocol: 'subset', connections: 64 }),
];

export const WORKLOADS: readonly Workload[] = [false, true].flatMap((logged) => [
  ...(logged ? [] : [...SECURE, ...HTTP2, ...FILTERS]),
  ...CONNECTIONS.map((n) => get('small', 'curl', CURL, n, logged)),
  ...CONNECTIONS.map((n) => get('small', 'browser', BROWSER, n, logged)),
  ...CONNECTIONS.map((n) => get('10k', 'curl', CURL, n, logged)),
  ...CONNECTIONS.map((n) => get('10k', 'browser', BROWSER, n, logged)),
  ...[8, 64].map((n) => workload(`get-once-${n}`, logged, { headers: [...CURL, CLOSE], connections: n })),
  workload('post-64k-64', logged, { connections: 64, postBytes: 65536 }),
  workload('download-100m-4', logged, { path: '/100m', connections: 4, unit: 'MB' }),
  ...CONNECTIONS.map((n) => workload(`tcp-requests-${n}`, logged, { protocol: 'tcp', connections: n })),
  workload('tcp-bulk-4', logged, { protocol: 'tcp', path: '/100m', connections: 4, unit: 'MB' }),
]);

export function hasTls({ protocol }: Workload): boolean {
  return protocol.startsWith('https') || protocol === 'reencrypted' || protocol === 'h2';
}

export function isHttp2({ streams }: Workload): boolean {
  return streams > 0;
}

export function isOnce(workload: Workload): boolean {
  return workload.headers.includes(CLOSE);
}

function get(answer: 'small' | '10k', client: string, headers: string[], connections: number, logged: boolean) {
  return workload(`get-${answer}-${client}-${connections}`, logged, { path: `/${answer}`, headers, connections });
}

function workload(name: string, logged: boolean, parts: Partial<Workload> & { connections: number }): Workload {
  return {
    name: logged ? `${name}+log` : name,
    protocol: 'http',
    resumes: false,
    logged,
    path: '/small',
    headers: CURL,
    streams: 0,
    postBytes: 0,
    unit: 'requests',
    ...parts,
  };
}
