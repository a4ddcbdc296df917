// nginx's binary upgrade: USR2 starts a second master on the same sockets, WINCH and QUIT end the first.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../../../test/e2e/harness/index.js';
import {
  DEADLINE_MS,
  newChildren,
  OLD_LIVES_SECONDS,
  type Place,
  processHasGone,
  type RestartablePeer,
} from './peer.js';

const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';

export const nginx: RestartablePeer = {
  name: 'nginx',
  start: async ({ directory, ports, origin }, workers) => {
    const configuration = join(directory, 'nginx.conf');
    const pidFile = join(directory, 'nginx.pid');
    const configure = (count: number): void =>
      writeFileSync(configuration, configurationText(directory, ports, origin, count));
    configure(workers);
    // nginx upgrades its binary only as a daemon, and starts the new one with the path that it was started with.
    const program = execFileSync('sh', ['-c', 'command -v nginx'], { encoding: 'utf8' }).trim();
    execFileSync(program, ['-p', directory, '-c', configuration, '-e', join(directory, 'error.log')], {
      stdio: 'inherit',
    });
    const master = (): number => Number(readFileSync(pidFile, 'latin1'));
    await waitFor(() => existsSync(pidFile) && master() > 0, { what: 'the process id of nginx' });
    let current = master();
    let old = 0;
    const terminateAll = (): void => {
      for (const pid of [old, current]) tryKill(pid, 'SIGTERM');
    };
    process.once('exit', terminateAll);
    await newChildren(current, workers);
    return {
      replace: async (count) => {
        configure(count);
        const begun = performance.now();
        old = current;
        process.kill(old, 'SIGUSR2');
        current = await waitFor(() => existsSync(pidFile) && master() !== old && master(), {
          what: 'the process id of the new nginx',
          deadlineMs: DEADLINE_MS,
        });
        await newChildren(current, count);
        const ms = performance.now() - begun;
        process.kill(old, 'SIGWINCH');
        return ms;
      },
      oldHasGone: async () => {
        await new Promise((resolve) => setTimeout(resolve, OLD_LIVES_SECONDS * 1000));
        process.kill(old, 'SIGQUIT');
        await processHasGone(old);
      },
      stop: async () => {
        process.kill(current, 'SIGTERM');
        await processHasGone(current);
        process.removeListener('exit', terminateAll);
      },
    };
  },
};

function configurationText(directory: string, ports: Place['ports'], origin: Place['origin'], workers: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `  ${kind}_temp_path ${join(directory, `nginx-${kind}`)};`,
  );
  return `
${existsSync(STREAM_MODULE) ? `load_module ${STREAM_MODULE};` : ''}
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon on;
worker_processes ${workers};
worker_shutdown_timeout ${OLD_LIVES_SECONDS}s;
pid ${join(directory, 'nginx.pid')};
events { use epoll; worker_connections 4096; multi_accept on; }
http {
${temporary.join('\n')}
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  upstream origin {
    server 127.0.0.1:${origin.http};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_request_buffering off;
  proxy_max_temp_file_size 0;
  client_max_body_size 0;
  server { listen 127.0.0.1:${ports.http} backlog=4096; location / { proxy_pass http://origin; } }
}
stream {
  server { listen 127.0.0.1:${ports.tcp} backlog=4096; proxy_half_close on; proxy_pass 127.0.0.1:${origin.tcp}; }
}
`;
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal);
  } catch {
    // It has exited.
  }
}
