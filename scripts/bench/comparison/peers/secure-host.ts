// The host of the re-encryption workload: an nginx that answers `/small` over TLS by itself.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnPinned } from '../../processes.js';
import type { TlsFiles } from '../certificates.js';

export function startSecureHost(core: number, parent: string, port: number, { ecdsa }: TlsFiles): ChildProcess {
  const directory = join(parent, 'secure-host');
  mkdirSync(directory);
  const configuration = join(directory, 'nginx.conf');
  writeFileSync(
    configuration,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${join(directory, 'nginx.pid')};
error_log stderr crit;
events { use epoll; worker_connections 4000; }
http {
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    ssl_certificate ${ecdsa.certificate};
    ssl_certificate_key ${ecdsa.key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    location / { return 200 "0123456789abcdef0123456789abcdef"; }
  }
}
`,
  );
  return spawnPinned(core, 'nginx', ['-p', directory, '-c', configuration, '-e', 'stderr']);
}
