// HAProxy: one thread, upstream connections shared by all requests, the request headers that Baton also adds.

import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { descriptorLimit, spawnPinned } from '../../processes.js';
import type { KeyPair } from '../certificates.js';
import type { Environment } from '../environment.js';
import type { Peer, Ports } from './peer.js';

export const haproxy: Peer = {
  name: 'haproxy',
  supports: () => true,
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

function configure({ secureUpstreamPort, tls, upstreamPort }: Environment, ports: Ports): string {
  const secure = (name: string, port: number, { both }: KeyPair, backend: string): string => `
frontend ${name}
  bind 127.0.0.1:${port} ssl crt ${both} ssl-min-ver TLSv1.2
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
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  backlog 4096
  http-reuse always
  option http-keep-alive
frontend http
  bind 127.0.0.1:${ports.http}
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  unique-id-format %[uuid()]
  unique-id-header X-Request-ID
  default_backend origin
frontend http_logged
  bind 127.0.0.1:${ports.httpLogged}
  log global
  option httplog
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  unique-id-format %[uuid()]
  unique-id-header X-Request-ID
  default_backend origin
${secure('https', ports.https, tls.ecdsa, 'origin')}
${secure('https_rsa', ports.httpsRsa, tls.rsa, 'origin')}
${secure('reencrypted', ports.reencrypted, tls.ecdsa, 'secure_origin')}
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
