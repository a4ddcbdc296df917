// HAProxy: one thread, upstream connections shared by all requests, the request headers that Baton also adds.

import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { descriptorLimit, spawnPinned } from '../../processes.js';
import type { KeyPair } from '../certificates.js';
import type { Environment } from '../environment.js';
import { POLICY_PORTS } from '../workloads.js';
import { haproxyScript } from './filters.js';
import type { Peer, Ports } from './peer.js';

export const haproxy: Peer = {
  name: 'haproxy',
  supports: ({ protocol }) => protocol !== 'traced' && !(POLICY_PORTS as readonly string[]).includes(protocol),
  start: (environment, ports) => {
    const { cores, directory } = environment;
    const configuration = join(directory, 'haproxy.cfg');
    // HAProxy writes no log files; each log line is one write to standard output, which comes closest.
    const log = join(directory, 'haproxy.log');
    writeFileSync(log, '');
    writeFileSync(configuration, configure(environment, ports));
    const stdio = ['ignore', openSync(log, 'a'), 'inherit'] as const;
    const child = spawnPinned(cores.proxy, 'haproxy', ['-db', '-f', configuration], { stdio: [...stdio] });
    return { child, logFiles: [log] };
  },
};

function configure(environment: Environment, ports: Ports): string {
  const { directory, grpcPort, http2Port, secureUpstreamPort, tls, upstreamPort } = environment;
  const plain = (name: string, port: number, backend: string, ...more: string[]): string => `
frontend ${name}
  bind 127.0.0.1:${port}${name.startsWith('h2') || name === 'grpc' ? ' proto h2' : ''}
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  unique-id-format %[uuid()]
  unique-id-header X-Request-ID
${more.map((line) => `  ${line}\n`).join('')}  default_backend ${backend}`;
  const secure = (name: string, port: number, { both }: KeyPair, backend: string, more = ''): string => `
frontend ${name}
  bind 127.0.0.1:${port} ssl crt ${both} ssl-min-ver TLSv1.2${more}
  option forwardfor
  http-request set-header X-Forwarded-Proto https
  unique-id-format %[uuid()]
  unique-id-header X-Request-ID
  default_backend ${backend}`;
  return `
global
  nbthread 1
  # HAProxy refuses to start without two descriptors for each of these.
  maxconn ${Math.min(12000, Math.floor((descriptorLimit() - 200) / 2))}
  log stdout format raw local0
  # Without tickets, no session resumes.
  tune.ssl.cachesize 0
  lua-load ${haproxyScript(directory)}
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  backlog 4096
  http-reuse always
  option http-keep-alive
${plain('http', ports.http, 'origin')}
${plain('http_logged', ports.httpLogged, 'origin', 'log global', 'option httplog')}
${plain('h2c', ports.h2c, 'origin')}
${plain('h2_to_h2', ports.h2ToH2, 'http2_origin')}
${plain('grpc', ports.grpc, 'grpc_origin')}
${plain('mutation', ports.mutation, 'origin', 'http-request set-header X-Seen %[req.hdr(user-agent)]')}
${plain('script', ports.script, 'origin', 'http-request lua.seen')}
${secure('https', ports.https, tls.ecdsa, 'origin')}
${secure('https_ecdsa_once', ports.httpsEcdsaOnce, tls.ecdsa, 'origin', ' no-tls-tickets')}
${secure('https_rsa_once', ports.httpsRsaOnce, tls.rsa, 'origin', ' no-tls-tickets')}
${secure('reencrypted', ports.reencrypted, tls.ecdsa, 'secure_origin')}
${secure('h2', ports.h2, tls.ecdsa, 'origin', ' alpn h2')}
backend http2_origin
  server origin 127.0.0.1:${http2Port} proto h2
backend grpc_origin
  server origin 127.0.0.1:${grpcPort} proto h2
backend secure_origin
  server origin 127.0.0.1:${secureUpstreamPort} ssl verify none ssl-min-ver TLSv1.3
backend origin
  server origin 127.0.0.1:${upstreamPort}
listen tcp
  mode tcp
  bind 127.0.0.1:${ports.tcp}
  server origin 127.0.0.1:${upstreamPort}
listen tcp_logged
  mode tcp
  bind 127.0.0.1:${ports.tcpLogged}
  log global
  option tcplog
  server origin 127.0.0.1:${upstreamPort}
`;
}
