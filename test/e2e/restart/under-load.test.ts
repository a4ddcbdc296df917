// Clients under load do not notice restarts: no connection is refused or reset, no request fails, no byte is lost.

import t from 'tap';
import {
  bootstrap,
  freePort,
  httpListener,
  routeAllTo,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { type ClientsSettings, type Ports, startClients, startOrigin } from './clients.js';
import { Epochs } from './epochs.js';

const DEADLINE_MS = 60_000;

/** Old processes live seconds longer than the drain time: slow machines need that for the last requests. */
const TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '8'];

/** Requests on short connections are answered at once: old processes need not live longer. */
const SHORT_TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '5'];

/** Few enough requests for a machine with other tasks; streams may be closed after the drain time. */
const SETTINGS: ClientsSettings = { rate: 600, cut: 0.9, deadline: 60 };

t.test('restarts with as many, fewer and more workers fail no request', async (t) => {
  const { ports, epochs } = await startEpochs(t, TIMES);
  await epochs.next(2);
  const clients = startClients(t, ports, SETTINGS);
  for (const workers of [2, 1, 3]) {
    await clients.answersOfEachKind();
    await epochs.next(workers);
    await epochs.previousExits();
  }
  await clients.answersOfEachKind();
  const tally = await clients.finish();
  t.equal(tally.failures, 0, `failures: ${clients.failures.join('\n')}`);
  t.ok(tally.announced > 0, 'old processes have asked connections to close');
  t.ok(tally.ended > 0, 'and closed the remaining streams');
  for (const { stderr } of epochs.all) t.notMatch(stderr, /\]\[(error|critical)\]/);
  await epochs.current.stop();
});

t.test('restarts under new connections at full rate, with changing numbers of workers, fail none', async (t) => {
  const { ports, epochs } = await startEpochs(t, SHORT_TIMES);
  await epochs.next(3);
  const only = { keepalive: 0, idle: 0, post: 0, pipelined: 0, stream: 0, short: 0 };
  const clients = startClients(t, ports, { ...SETTINGS, ...only, fresh: 64, rate: 0 });
  for (const workers of [1, 2]) {
    await waitFor(async () => (await clients.mark()).requests > 0, { what: 'answers', deadlineMs: DEADLINE_MS });
    await epochs.next(workers);
    await epochs.previousExits();
  }
  const tally = await clients.finish();
  t.equal(tally.failures, 0, `failures: ${clients.failures.join('\n')}`);
  t.ok(tally.connections > 1000, `${tally.connections} connections`);
  await epochs.current.stop();
});

t.test('with connection hand-over no TCP stream is closed either', async (t) => {
  const { ports, epochs } = await startEpochs(t, [...TIMES, '--hand-over-connections']);
  await epochs.next(2);
  const clients = startClients(t, ports, { rate: SETTINGS.rate, deadline: 60 });
  for (const workers of [1, 3]) {
    await clients.answersOfEachKind();
    await epochs.next(workers);
    await epochs.previousExits();
  }
  await clients.answersOfEachKind();
  const tally = await clients.finish();
  t.equal(tally.failures, 0, `failures: ${clients.failures.join('\n')}`);
  t.equal(tally.ended, 0);
  await epochs.current.stop();
});

/** Starts an origin; returns it with epochs of a proxy in front of it that are not started yet. */
async function startEpochs(t: Teardown, args: readonly string[]): Promise<{ ports: Ports; epochs: Epochs }> {
  const origin = await startOrigin(t);
  const ports = { http: await freePort(), tcp: await freePort() };
  const config = bootstrap({
    listeners: [
      httpListener('http', ports.http, { route_config: routeAllTo('origin', { timeout: '60s' }) }),
      tcpListener('tcp', ports.tcp, { cluster: 'origin_tcp' }),
    ],
    clusters: [staticCluster('origin', origin.http), staticCluster('origin_tcp', origin.tcp)],
  });
  return { ports, epochs: new Epochs(t, { config, args, deadlineMs: DEADLINE_MS }) };
}
