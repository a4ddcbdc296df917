// examples/from-nginx.yaml answers like nginx with the equivalent configuration in docs/migrating.md.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import {
  endsWithTest,
  findPeer,
  freePort,
  type HttpAnswer,
  httpRequest,
  startBaton,
  startUpstream,
  tempDir,
  waitFor,
} from '../harness/index.js';

const nginx = findPeer('nginx');

/** Method and path, and the host. */
const REQUESTS = [
  ['/healthz', 'shop.example'],
  ['/healthz?all', 'www.shop.example'],
  ['/old/', 'shop.example'],
  ['/old/?page=2&sort=up', 'shop.example'],
  ['/old/a/b?page=2', 'shop.example'],
  ['/v1/items?x=1', 'shop.example'],
  ['/api/orders?y=2', 'shop.example:8080'],
  ['/', 'shop.example'],
  ['/old/', 'other.example'],
] as const;

/** Returns the parts of a response that matter to a client. */
function essence({ status, headers, body }: HttpAnswer) {
  const location = headers['location'];
  const { pathname, search } = new URL(String(location ?? '/'), 'http://none');
  const isOwn = status >= 300;
  return { status, target: location && pathname + search, frames: headers['x-frame-options'], body: isOwn ? '' : body };
}

async function startNginx(t: Test, path: string, server: string, port: number): Promise<void> {
  const directory = tempDir(t);
  mkdirSync(join(directory, 'temporary'));
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(directory, 'temporary', name)};`)
    .join('\n');
  const config = `daemon off; master_process off; pid ${join(directory, 'pid')}; error_log stderr; events {}\nhttp {\naccess_log off;\n${places}\n${server}\n}\n`;
  writeFileSync(join(directory, 'nginx.conf'), config);
  const child = spawn(path, ['-e', 'stderr', '-c', join(directory, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  endsWithTest(t, child);
  let said = '';
  child.stderr.on('data', (text) => (said += text));
  await waitFor(
    async () => {
      if (child.exitCode !== null) throw new Error(said);
      return await httpRequest(port, '/').catch(() => undefined);
    },
    { what: 'nginx' },
  );
}

t.test('nginx and Baton give the same responses', { skip: nginx.path === undefined && nginx.skip }, async (t) => {
  const upstream = await startUpstream(t, (request, response) => response.end(`received ${request.url}`));
  const port = await freePort();
  /** Both configurations with this upstream, and another listener address. */
  const moved = (text: string, listen: string, to: string) =>
    text.replace(/\b808[12]\b/g, `${upstream.port}`).replaceAll(listen, to);
  const [, server = ''] = /```nginx\n([\s\S]*?)```/.exec(readFileSync(packagePath('docs/migrating.md'), 'utf8')) ?? [];
  await startNginx(
    t,
    nginx.path!,
    moved(server.replaceAll('/dev/stdout', 'off'), 'listen 8080', `listen 127.0.0.1:${port}`),
    port,
  );
  const example = readFileSync(packagePath('examples/from-nginx.yaml'), 'utf8');
  const ports: [string, string][] = [
    ['port_value: 8080', 'port_value: 0'],
    ['port_value: 9901', 'port_value: 0'],
  ];
  const config = ports.reduce((text, [from, to]) => moved(text, from, to), example).replace('0.0.0.0', '127.0.0.1');
  const baton = await startBaton(t, { config });
  const own = await baton.listenerPort('http');
  for (const [path, host] of REQUESTS) {
    const ask = (at: number) => httpRequest(at, path, { headers: { host } });
    t.strictSame(essence(await ask(own)), essence(await ask(port)), `${host}${path}`);
  }
  t.match(essence(await httpRequest(own, '/old/a?b=c', { headers: { host: 'shop.example' } })), {
    target: '/new/a?b=c',
  });
  await baton.stop();
});
