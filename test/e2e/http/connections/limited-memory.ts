// A Baton with little request memory in front of a host that answers with digests of bodies, and requests that use some of the
// memory.

import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import {
  connectRaw,
  httpRequest,
  type RawConnection,
  startUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http.';
export const LIMIT_MB = 16;
export const BODY = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 31 + (index >> 8) * 7) & 255));
export const DIGEST = createHash('sha256').update(BODY).digest('hex');

export interface DigestHost {
  readonly port: number;
  /** Requests received and not answered yet. */
  readonly waiting: ServerResponse[];
  answersLater: boolean;
  /** Answers the waiting requests, and later ones at once. */
  answerAll(): void;
}

export async function startHost(t: Teardown): Promise<DigestHost> {
  const upstream = await startUpstream(t, (incoming, outgoing) => {
    const hash = createHash('sha256');
    incoming.on('data', (chunk: Buffer) => hash.update(chunk));
    incoming.on('end', () => {
      if (host.answersLater) host.waiting.push(outgoing);
      else outgoing.end(hash.digest('hex'));
    });
  });
  const host: DigestHost = {
    port: upstream.port,
    waiting: [],
    answersLater: false,
    answerAll: () => {
      host.answersLater = false;
      for (const outgoing of host.waiting.splice(0)) outgoing.end('late');
    },
  };
  return host;
}

const MANY = { thresholds: [{ max_connections: 4000, max_pending_requests: 4000, max_requests: 4000 }] };

/** Listeners: `main` buffers whole bodies, `kept` streams them and keeps them for retries, `plain` keeps nothing. */
export function startWithHost(t: Teardown, { port }: DigestHost, args: readonly string[]): Promise<HttpProxy> {
  const main = managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [
      { name: 'buffer', typed_config: { '@type': `${FILTERS}buffer.v3.Buffer`, max_request_bytes: BODY.length } },
      { name: 'router', typed_config: { '@type': `${FILTERS}router.v3.Router` } },
    ],
  });
  const kept = managerOf([routeTo({ prefix: '/' }, 'host', { retry_policy: { retry_on: 'reset' } })]);
  const plain = managerOf([routeTo({ prefix: '/' }, 'host')]);
  const clusters = [{ ...staticCluster('host', port), circuit_breakers: MANY }];
  return startProxy(t, { listeners: { main, kept, plain }, clusters, args: ['-l', 'warning', ...args] });
}

export const LITTLE = ['--worker-buffer-memory-mb', String(LIMIT_MB)];

export function memoryOf({ baton }: HttpProxy): Promise<Record<string, number>> {
  return baton.stats('server.worker_0.buffer_memory_');
}

/** Opens clients that have sent the first `bytes` bytes of a request. */
export async function sendPartialHeads(
  t: Teardown,
  proxy: HttpProxy,
  count: number,
  bytes: number,
): Promise<RawConnection[]> {
  const head = `GET / HTTP/1.1\r\nhost: a\r\nx-long: ${'a'.repeat(bytes)}`;
  const before = (await proxy.baton.stat('http.main.downstream_cx_rx_bytes_total'))!;
  const clients: RawConnection[] = [];
  for (let i = 0; i < count; i++) {
    const client = await connectRaw(t, proxy.port);
    client.write(head);
    clients.push(client);
  }
  const all = before + count * head.length;
  await waitFor(async () => (await proxy.baton.stat('http.main.downstream_cx_rx_bytes_total'))! >= all);
  return clients;
}

/** Sends requests with header sections of 17 to 60 KB on separate connections; returns the number of each status. */
export async function wholeRequests(
  { port }: HttpProxy,
  count: number,
  atOnce: number,
): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  let next = 0;
  const send = async () => {
    while (next < count) {
      const bytes = 17 * 1024 + ((next++ * 7919) % (42 * 1024));
      const { status } = await httpRequest(port, '/', { headers: { 'x-long': 'b'.repeat(bytes) } });
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
  return statuses;
}
