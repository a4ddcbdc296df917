// nginx: one worker, upstream keep-alive, the request headers that Baton also adds, streaming both ways.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnPinned } from '../../processes.js';
import type { KeyPair } from '../certificates.js';
import type { Environment } from '../environment.js';
import { POLICY_PORTS } from '../workloads.js';
import type { Peer, Ports } from './peer.js';

/** Debian packages TCP proxying as a separate module (libnginx-mod-stream). */
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';
const hasStream = existsSync(STREAM_MODULE);

const LACKING: readonly string[] = ['h2ToH2', 'script', 'traced', ...POLICY_PORTS];

export const nginx: Peer = {
  name: 'nginx',
  // It has no HTTP/2 to hosts but for gRPC, and Debian's neither scripts nor tracing.
  supports: ({ protocol }) => (protocol === 'tcp' ? hasStream : !LACKING.includes(protocol)),
  start: (environment, ports) => {
    const { cores, directory } = environment;
    const configuration = join(directory, 'nginx.conf');
    const logFiles = [join(directory, 'nginx-http.log'), join(directory, 'nginx-tcp.log')];
    for (const file of logFiles) writeFileSync(file, '');
    writeFileSync(configuration, configure(environment, ports, logFiles));
    const args = ['-p', directory, '-c', configuration, '-e', 'stderr'];
    return { child: spawnPinned(cores.proxy, 'nginx', args), logFiles };
  },
};

function configure(environment: Environment, ports: Ports, [httpLog, tcpLog]: string[]): string {
  const { directory, upstreamPort } = environment;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `  ${kind}_temp_path ${join(directory, `nginx-${kind}`)};`,
  );
  return `
${hasStream ? `load_module ${STREAM_MODULE};` : ''}
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${join(directory, 'nginx.pid')};
error_log stderr crit;
events { use epoll; worker_connections 16000; multi_accept on; }
http {
${temporary.join('\n')}
  # The fields of Baton's default format; written like Baton's in blocks of 64 KB or every 10 seconds.
  log_format same '[$time_iso8601] "$request" $status - $request_length $body_bytes_sent $request_time '
                  '$upstream_response_time "$proxy_add_x_forwarded_for" "$http_user_agent" "$request_id" "$http_host" '
                  '"$upstream_addr"';
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  tcp_nodelay on;
  upstream origin {
    server 127.0.0.1:${upstreamPort};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_set_header X-Forwarded-Proto $scheme;
  proxy_set_header X-Request-Id $request_id;
  # Bodies are streamed in both directions: without these nginx would write large ones to files. A buffer for a whole POST body
  # saves 40 % of its cost.
  proxy_request_buffering off;
  client_body_buffer_size 128k;
  proxy_max_temp_file_size 0;
  proxy_buffer_size 16k;
  proxy_buffers 8 16k;
  client_max_body_size 0;
  server { listen 127.0.0.1:${ports.http} backlog=4096; access_log off; location / { proxy_pass http://origin; } }
  server {
    listen 127.0.0.1:${ports.httpLogged} backlog=4096;
    access_log ${httpLog} same buffer=64k flush=10s;
    location / { proxy_pass http://origin; }
  }
  server { listen 127.0.0.1:${ports.h2c} http2 backlog=4096; access_log off; location / { proxy_pass http://origin; } }
  server {
    listen 127.0.0.1:${ports.mutation} backlog=4096;
    access_log off;
    location / {
      proxy_pass http://origin;
      # A location with settings of its own inherits none.
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Request-Id $request_id;
      proxy_set_header X-Seen $http_user_agent;
    }
  }
  upstream grpc_origin {
    server 127.0.0.1:${environment.grpcPort};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${ports.grpc} http2 backlog=4096;
    access_log off;
    location / {
      grpc_pass grpc://grpc_origin;
      grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      grpc_set_header X-Forwarded-Proto $scheme;
      grpc_set_header X-Request-Id $request_id;
    }
  }
${secure(environment, ports)}
}
${hasStream ? stream(upstreamPort, ports, tcpLog!) : ''}`;
}

/** Tickets are on by default. */
function secure({ secureUpstreamPort, tls }: Environment, ports: Ports): string {
  const server = (port: number, { certificate, key }: KeyPair, to: string, protocol = '', more = ''): string => `
  server {
    listen 127.0.0.1:${port} ssl${protocol} backlog=4096;
    access_log off;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_timeout 1h;
    ${more}
    location / { proxy_pass ${to}; }
  }`;
  return `
  upstream secure_origin {
    server 127.0.0.1:${secureUpstreamPort};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
  }
  proxy_ssl_protocols TLSv1.3;
  ${server(ports.https, tls.ecdsa, 'http://origin')}
  ${server(ports.httpsEcdsaOnce, tls.ecdsa, 'http://origin', '', 'ssl_session_tickets off;')}
  ${server(ports.httpsRsaOnce, tls.rsa, 'http://origin', '', 'ssl_session_tickets off;')}
  ${server(ports.h2, tls.ecdsa, 'http://origin', ' http2')}
  ${server(ports.reencrypted, tls.ecdsa, 'https://secure_origin')}`;
}

function stream(upstreamPort: number, ports: Ports, tcpLog: string): string {
  return `
stream {
  log_format same '[$time_iso8601] $protocol $status $bytes_sent $bytes_received $session_time "$upstream_addr"';
  proxy_buffer_size 64k;
  tcp_nodelay on;
  server { listen 127.0.0.1:${ports.tcp} backlog=4096; access_log off; proxy_pass 127.0.0.1:${upstreamPort}; }
  server {
    listen 127.0.0.1:${ports.tcpLogged} backlog=4096;
    access_log ${tcpLog} same buffer=64k flush=10s;
    proxy_pass 127.0.0.1:${upstreamPort};
  }
}
`;
}
