// TLS connections of clients to a running server, and of the server to a host, through relays that change the bytes of both directions.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Random } from '../../src/common/random.js';
import { Authority } from '../../test/e2e/harness/certificates.js';
import {
  type BatonProcess,
  bootstrap,
  httpListener,
  routeAllTo,
  startBaton,
  staticCluster,
  waitFor,
} from '../../test/e2e/harness/index.js';
import {
  clientTls,
  httpsGet,
  httpsListener,
  serverTls,
  startSecureHost,
  trustedCa,
} from '../../test/e2e/tls/contexts.js';
import { MANAGER } from '../../test/e2e/tls/https-proxy.js';
import { mutateBytes, pick } from './mutation.js';
import { defectIn, Finding, type Scope } from './scope.js';

/** Concurrent connections. */
const CONNECTIONS = 16;
/** How long a client waits for an answer. */
const PATIENCE_MS = 100;
const CONNECTIONS_PER_CHECK = 200;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
const REQUEST = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';

/** Headers of records, whole alerts, and messages in records. */
const TOKENS: readonly Buffer[] = [
  ...['\x16\x03\x03\x00\x00', '\x17\x03\x03\x00\x00', '\x17\x03\x03\x40\x00', '\x16\x03\x01\xff\xff'],
  ...['\x14\x03\x03\x00\x01\x01', '\x15\x03\x03\x00\x02\x01\x00', '\x15\x03\x03\x00\x02\x01\x5a'],
  ...['\x15\x03\x03\x00\x02\x02\x28', '\x16\x03\x03\x00\x04\0\0\0\0', '\x16\x03\x03\x00\x05\x18\0\0\x01\x01'],
].map((text) => Buffer.from(text, 'latin1'));

/** Throws a Finding when the server shows a defect. Returns a summary. */
export async function fuzzTls(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const root = await Authority.create();
  const certificate = await root.issue({ names: ['server.test'] });
  const host = await startSecureHost(scope, certificate, (_request, answer) => void answer.end('ok'));
  const validation = { validation_context: trustedCa(root), tls_params: { tls_maximum_protocol_version: 'TLSv1_3' } };
  const cluster = staticCluster('host', await startRelay(scope, host.port, random), {
    connect_timeout: '1s',
    transport_socket: clientTls(validation, { sni: 'server.test' }),
  });
  const timeout = { transport_socket_connect_timeout: '1s' };
  const listeners = [
    { ...httpsListener('secure', serverTls([certificate]), MANAGER, timeout), stat_prefix: 'secure' },
    httpListener('plain', 0, { route_config: routeAllTo('host') }),
  ];
  const config = bootstrap({ listeners, clusters: [cluster] });
  const baton = await startBaton(scope, { config, args: ['--concurrency', '2'] });
  const secure = await baton.listenerPort('secure');
  const plain = await baton.listenerPort('plain');
  const relay = await startRelay(scope, secure, random);
  const end = performance.now() + durationMs;
  let [connections, answered] = [0, 0];
  const worker = async (): Promise<void> => {
    while (performance.now() < end && baton.exit === undefined) {
      const version = pick(random, VERSIONS);
      const options = { port: relay, minVersion: version, maxVersion: version, rejectUnauthorized: false };
      const socket =
        random.below(2) === 0 ? connect(plain, '127.0.0.1') : connectTls({ host: '127.0.0.1', ...options });
      if (await isAnswered(socket)) answered++;
      if (++connections % CONNECTIONS_PER_CHECK === 0) await check(baton, secure);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  await check(baton, secure);
  await baton.waitForStats({ 'listener.secure.downstream_cx_active': 0 }).catch((error: unknown) => {
    throw new Finding(`connections are left: ${error}`);
  });
  return `${connections} connections, of which ${answered} got an answer; no defect`;
}

/** Throws a Finding if the server has shown a defect or serves no client. */
async function check(baton: BatonProcess, port: number): Promise<void> {
  const defect = baton.exit === undefined ? defectIn(baton.stderr) : `it has exited\n${baton.stderr.slice(-4000)}`;
  if (defect !== undefined) throw new Finding(defect);
  const answer = await httpsGet(port, { rejectUnauthorized: false }).catch(String);
  if (typeof answer === 'string' || answer.status !== 200) throw new Finding(`no answer: ${String(answer)}`);
  answer.socket.destroy();
}

async function isAnswered(socket: Socket): Promise<boolean> {
  let isAnswer = false;
  let isClosed = false;
  socket.on('error', () => {});
  socket.on('data', () => {
    isAnswer = true;
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.setTimeout(PATIENCE_MS, () => socket.destroy());
  socket.write(REQUEST);
  await waitFor(() => isClosed);
  return isAnswer;
}

/** Starts a relay to `port`, which changes some of the bytes, cuts some connections off, and resets some. */
async function startRelay(scope: Scope, port: number, random: Random): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      open.add(from);
      from.on('error', () => {});
      from.on('end', () => to.end());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.on('data', (bytes) => {
        const isChanged = random.below(4) === 0;
        to.write(isChanged ? mutateBytes(random, [bytes], TOKENS) : bytes);
        if (isChanged && random.below(6) === 0) to.end();
        if (isChanged && random.below(12) === 0) to.resetAndDestroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
