// A version of a listener with real sockets: which clients, workers and processes can use them in each of its states.

import { connect } from 'node:net';
import t, { type Test } from 'tap';
import type { Listener } from '../../../src/config/generated/api.js';
import { loadShim } from '../../../src/io/shim.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import { ListenerBlocks } from '../../../src/server/listeners/version/listener-blocks.js';
import { type ListenerContext, PrimaryListener } from '../../../src/server/listeners/version/primary-listener.js';
import { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';
import { StatsStore } from '../../../src/stats/store.js';
import { SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { accepted } from '../../../src/xds/dynamic-state.js';

const config: Listener = { name: 'door', address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };

function makeVersion(t: Test): PrimaryListener {
  const makers = {
    shim: loadShim(),
    concurrency: 2,
    blocks: new ListenerBlocks(new SharedWordsOwner()),
    scopes: new WorkerScopes(new StatsStore({ workers: 2 })),
    isInHotRestart: () => false,
    parts: { createForLogs: () => ({ close: () => {} }) },
  } as unknown as ListenerContext;
  const spec = { name: 'door', config, isStatic: true, number: 0, shown: config, state: accepted({ version: '' }) };
  const version = new PrimaryListener(spec, makers, new InitManager('door'), undefined);
  t.teardown(() => version.close());
  return version;
}

/** What workers, a child process and another version receive of its sockets. */
function given(version: PrimaryListener) {
  const { fds, isListening } = version.snapshot(undefined, version.chains);
  const toChild = version.offer(0)?.fds.length ?? 0;
  return { toWorkers: fds.length, isListening, toChild, isShared: version.sharesSockets, isBound: version.hasSockets };
}

async function canConnect({ address: { ip, port } }: PrimaryListener): Promise<boolean> {
  const socket = connect(port, ip);
  const isConnected = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  socket.destroy();
  return isConnected;
}

t.test('a version accepts clients once it listens, and shares its sockets until it is closed', async (t) => {
  const version = makeVersion(t);
  t.strictSame(given(version), { toWorkers: 2, isListening: false, toChild: 0, isShared: true, isBound: true });
  t.equal(await canConnect(version), false);
  version.startListening();
  t.strictSame(given(version), { toWorkers: 2, isListening: true, toChild: 2, isShared: true, isBound: true });
  t.equal(await canConnect(version), true);
  version.stop();
  t.strictSame(given(version), { toWorkers: 0, isListening: false, toChild: 0, isShared: true, isBound: true });
  version.close();
  t.strictSame(given(version), { toWorkers: 0, isListening: false, toChild: 0, isShared: false, isBound: false });
  t.equal(await canConnect(version), false);
});

t.test('a version that is stopped before it listens never does, and its sockets are not shared', async (t) => {
  const version = makeVersion(t);
  version.stop();
  version.startListening();
  t.strictSame(given(version), { toWorkers: 0, isListening: false, toChild: 0, isShared: false, isBound: true });
  t.equal(await canConnect(version), false);
});
