// Clients do not notice updates: no request fails, and no connection of an unchanged listener is closed.

import t, { type Test } from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import { tempDir } from '../harness/index.js';
import { type ClientsSettings, startClients, startOrigin } from '../restart/clients.js';
import { ChangingProxy, UPDATES } from './changing-proxy.js';
import { FileSource, type ResourceSource, StreamSource } from './sources.js';

/** Connections that last as long as the proxy allows. */
const LASTING: ClientsSettings = { keepalive: 8, idle: 4, post: 4, pipelined: 2, stream: 4, fresh: 0, short: 0 };
const SHORT: ClientsSettings = { keepalive: 0, idle: 0, post: 0, pipelined: 0, stream: 0, fresh: 4, short: 2 };
/**
 * Where filter chains change in quick succession, connections are asked to close as soon as they are opened: no pipelines
 * there.
 */
const MOVING: ClientsSettings = { keepalive: 4, idle: 0, post: 4, pipelined: 0, stream: 0, fresh: 4, short: 0 };

t.test('updates from files fail no request', async (t) => {
  // A file must be unchanged for a fifth of a second before it is read.
  await changesUnderLoad(t, new FileSource(tempDir(t)), 30);
});

t.test('updates of a management server fail no request: state of the world', async (t) => {
  await changesUnderLoad(t, new StreamSource(await startControlPlane(t), 'sotw'), 100);
});

t.test('updates of a management server fail no request: delta', async (t) => {
  await changesUnderLoad(t, new StreamSource(await startControlPlane(t), 'delta'), 100);
});

async function changesUnderLoad(t: Test, source: ResourceSource, updates: number): Promise<void> {
  const origins = [await startOrigin(t), await startOrigin(t), await startOrigin(t)];
  const proxy = await ChangingProxy.start(t, source, {
    origins: origins.map(({ http }) => http),
    tcpOrigin: origins[0]!.tcp,
    args: ['--concurrency', '2', '-l', 'warning', '--drain-time-s', '3', '--drain-strategy', 'immediate'],
  });
  const { steady, changing } = proxy;
  const load = { rate: 300, deadline: 60 };
  const lasting = startClients(t, steady, { ...load, ...LASTING });
  const short = startClients(t, steady, { ...load, ...SHORT });
  const moving = startClients(t, { http: changing, tcp: changing }, { ...load, ...MOVING });
  const answered = async (): Promise<void> => {
    await lasting.answersOfEachKind();
    await short.answersOfEachKind();
    await moving.answersOfEachKind();
  };
  await answered();
  for (let count = 0; count < updates; count++) await proxy.update(UPDATES[count % UPDATES.length]!);
  await answered();

  const kept = await lasting.finish();
  t.equal(kept.failures, 0, `failures: ${lasting.failures.join('\n')}`);
  const count = Object.values(LASTING).reduce((sum, each) => sum + each, 0);
  t.equal(kept.connections, count, 'no client of the unchanged listeners has reconnected');
  t.equal(kept.announced + kept.ended + kept.endedByReset, 0);
  for (const clients of [short, moving]) {
    const tally = await clients.finish();
    t.equal(tally.failures, 0, `failures: ${clients.failures.join('\n')}`);
  }
  const { baton } = proxy;
  t.notMatch(baton.stderr, /\]\[(warning|error|critical)\]/);
  for (const name of ['listener_manager.lds', 'cluster_manager.cds']) {
    t.equal(await baton.stat(`${name}.update_rejected`), 0, name);
  }
  await baton.stop();
}
