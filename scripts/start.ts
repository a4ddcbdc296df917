// `npm start`: runs Baton with the given arguments, or, without any, the quick start with its own upstream.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packagePath } from '../src/common/package/package-root.js';

const QUICKSTART = 'examples/quickstart.yaml';
/** The port in the quick start's cluster. */
const UPSTREAM_PORT = 8081;
const HTTPS_PORT = 8443;

const given = process.argv.slice(2);
const upstream = given.length === 0 ? await startUpstream() : undefined;
const main = fileURLToPath(new URL('../baton/main.js', import.meta.url));
const baton = spawn(process.execPath, [main, ...(given.length > 0 ? given : await quickStart())], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGHUP'] as const) process.on(signal, () => baton.kill(signal));
baton.on('exit', (code) => {
  upstream?.close();
  upstream?.closeAllConnections();
  process.exitCode = code ?? 1;
});

/** Returns the arguments of the quick start, and prints its addresses. */
async function quickStart(): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-quick-start-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const path = packagePath(QUICKSTART);
  // Only the quick start needs the packages that it imports.
  const { httpsQuickStart } = await import('./quick-start-https.js');
  const { certificate, configuration } = await httpsQuickStart(path, directory, HTTPS_PORT);
  process.stdout.write(
    'Open http://127.0.0.1:8080/ (through Baton to an upstream), http://127.0.0.1:8080/hello (Baton itself), ' +
      'http://127.0.0.1:9901/help (admin). With HTTPS and HTTP/2:\n' +
      `  curl --cacert ${certificate} https://localhost:${HTTPS_PORT}/\nCtrl+C ends it.\n`,
  );
  // It may run beside other servers, which have the default base ID.
  return ['-c', path, '--config-yaml', configuration, '--use-dynamic-base-id'];
}

/** Answers every request with the received request, which shows the headers that the proxy adds. */
function startUpstream(): Promise<Server> {
  const server = createServer((request, response) => {
    const head = [`${request.method} ${request.url}`];
    for (const [name, value] of Object.entries(request.headers)) head.push(`${name}: ${String(value)}`);
    request.resume();
    request.on('end', () => {
      response.setHeader('content-type', 'text/plain');
      response.end(`The upstream has received:\n\n${head.join('\n')}\n`);
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error);
      process.stderr.write(
        `The upstream of the quick start needs port ${UPSTREAM_PORT}, which another program has: end that ` +
          `(ss -ltnp shows it), or start a configuration of your own with npm start -- -c my.yaml.\n`,
      );
      process.exit(1);
    });
    server.listen(UPSTREAM_PORT, '127.0.0.1', () => resolve(server));
  });
}
