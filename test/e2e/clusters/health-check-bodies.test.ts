// The bodies of HTTP health checks: what is sent, and what is expected in the first bytes of responses. All results are Envoy's.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, type Config, startBaton, staticCluster } from '../harness/index.js';

const hex = (text: string) => ({ text: Buffer.from(text).toString('hex') });
const LONG = `${'x'.repeat(2000)}needle`;

const PASSING: Readonly<Record<string, Config>> = {
  found: { path: '/hello', receive: [hex('hello')] },
  binary: { path: '/hello', receive: [{ binary: Buffer.from('world').toString('base64') }] },
  ordered: { path: '/hello', receive: [hex('hello'), hex('wor')] },
  divided: { path: '/divided', receive: [hex('world'), hex('bar')] },
  far: { path: '/long', receive: [hex('needle')], response_buffer_size: 4000 },
  unlimited: { path: '/long', receive: [hex('needle')], response_buffer_size: 0 },
  'just-in': { path: '/hello', receive: [hex('worl')], response_buffer_size: 10 },
  'own-status': { path: '/503', receive: [hex('hello')], expected_statuses: [{ start: 503, end: 504 }] },
  sending: { path: '/echo', method: 'POST', send: hex('ping'), receive: [hex('POST ping 4')] },
  'sending-2': { path: '/echo', method: 'PUT', send: { binary: 'cG9uZw==' }, receive: [hex('PUT pong 4')] },
};

const FAILING: Readonly<Record<string, Config>> = {
  absent: { path: '/hello', receive: [hex('bye')] },
  disordered: { path: '/hello', receive: [hex('wor'), hex('hello')] },
  overlapping: { path: '/hello', receive: [hex('hello'), hex('lo w')] },
  'too-far': { path: '/long', receive: [hex('needle')] },
  'cut-off': { path: '/hello', receive: [hex('world')], response_buffer_size: 10 },
  empty: { path: '/empty', receive: [hex('x')] },
  'other-status': { path: '/503', receive: [hex('hello')] },
};

async function startHost(t: { teardown(end: () => void): void }): Promise<number> {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (text: string) => (body += text));
    request.on('end', () => {
      if (request.url === '/long') return response.end(LONG);
      if (request.url === '/empty') return response.end();
      if (request.url === '/echo')
        return response.end(`${request.method} ${body} ${request.headers['content-length']}`);
      if (request.url === '/503') response.statusCode = 503;
      if (request.url !== '/divided') return response.end('hello world');
      response.write('hello wo', () => response.end('rld foo bar'));
      return undefined;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

const check = (http_health_check: Config): Config => ({
  health_checks: [{ timeout: '5s', interval: '60s', unhealthy_threshold: 1, healthy_threshold: 1, http_health_check }],
});

besideEnvoy('a response must have the expected body', async (t, program) => {
  const port = await startHost(t);
  const clusters = Object.entries({ ...PASSING, ...FAILING }).map(([name, config]) =>
    staticCluster(name, port, check(config)),
  );
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [], clusters }) });
  const expected = [
    ...Object.keys(PASSING).flatMap((name) => [[`cluster.${name}.health_check.success`, 1]]),
    ...Object.keys(FAILING).flatMap((name) => [[`cluster.${name}.health_check.failure`, 1]]),
  ];
  await baton.waitForStats(Object.fromEntries(expected) as Record<string, number>);
  const { body } = await baton.admin('/clusters');
  for (const name of Object.keys(PASSING)) t.match(body, `${name}::127.0.0.1:${port}::health_flags::healthy`);
  for (const name of Object.keys(FAILING)) t.match(body, `${name}::127.0.0.1:${port}::health_flags::/failed_active_hc`);
});

for (const [what, config, text] of [
  ['a body with GET', { send: hex('a') }, /send: .*cannot specify a request payload with method 'GET'/],
  ['a body with HEAD', { method: 'HEAD', send: hex('a') }, /cannot specify a request payload with method 'HEAD'/],
  ['no hexadecimal digits', { receive: [{ text: 'zz' }] }, /receive\[0\]\.text: .*hexadecimal digits/],
] as const) {
  t.test(`refused: ${what}`, async (t) => {
    const clusters = [staticCluster('a', 1, check({ path: '/', ...config }))];
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters }), wait: 'spawned' });
    t.not((await baton.exited).code, 0);
    t.match(baton.stderr, text);
  });
}
