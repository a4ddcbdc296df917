// Runtime layers of a running server: a disk tree that is swapped under traffic, and servers without an admin layer.

import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { bootstrap, httpListener, httpRequest, startBaton, tempDir, waitFor } from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

t.test('a swapped symbolic link changes routing without a failed request; overrides stay', async (t) => {
  const directory = tempDir(t);
  const current = join(directory, 'current');
  for (const [version, share] of [
    ['v1', '0'],
    ['v2', '# everybody\n100\n'],
  ] as const) {
    mkdirSync(join(directory, version, 'app/routing'), { recursive: true });
    writeFileSync(join(directory, version, 'app/routing/split'), share);
  }
  symlinkSync('v1', current);
  const split = { default_value: { numerator: 50 }, runtime_key: 'routing.split' };
  const manager = managerOf([
    answering({ prefix: '/', runtime_fraction: split }, 'new'),
    answering({ prefix: '/' }, 'old'),
  ]);
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, manager)],
      clusters: [],
      extra: {
        node: { cluster: 'front' },
        layered_runtime: {
          layers: [
            { name: 'disk', disk_layer: { symlink_root: current, subdirectory: 'app' } },
            {
              name: 'override',
              disk_layer: { symlink_root: current, subdirectory: 'o', append_service_cluster: true },
            },
            { name: 'admin', admin_layer: {} },
          ],
        },
      },
    }),
    args: ['-l', 'info', '--concurrency', '2'],
  });
  const port = await baton.listenerPort('main');
  const some = () => Promise.all(Array.from({ length: 16 }, () => httpRequest(port)));
  t.ok((await some()).every(({ body }) => body === 'old'));
  t.equal((await baton.admin('/runtime_modify?mine=kept', { method: 'POST' })).body, 'OK\n');

  symlinkSync('v2', join(directory, 'next'));
  renameSync(join(directory, 'next'), current);
  await waitFor(
    async () => {
      const answers = await some();
      if (answers.some(({ status }) => status !== 200)) throw new Error('a request has failed');
      return answers.every(({ body }) => body === 'new');
    },
    { what: 'the new values on both workers' },
  );
  t.match(JSON.parse((await baton.admin('/runtime')).body), {
    layers: ['disk', 'admin'],
    entries: {
      'routing.split': { final_value: '100', layer_values: ['100', ''] },
      mine: { final_value: 'kept', layer_values: ['', 'kept'] },
    },
  });
  t.equal(await baton.stat('runtime.admin_overrides_active'), 1);
  t.equal(await baton.stat('runtime.load_error'), 0);
  t.equal(await baton.stat('runtime.num_layers'), 2);
  await baton.stop();
});

t.test('without an admin layer nothing can be changed', async (t) => {
  for (const [layered, layers] of [
    [undefined, []],
    [{ layers: [{ name: 'base', static_layer: { key: 'value' } }] }, ['base']],
  ] as const) {
    const extra = layered === undefined ? {} : { layered_runtime: layered };
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [], extra }) });
    t.match(await baton.admin('/runtime_modify?key=1', { method: 'POST' }), {
      status: 503,
      body: 'No admin layer specified',
    });
    t.same(JSON.parse((await baton.admin('/runtime')).body).layers, layers);
    await baton.stop();
  }
});

t.test('a root that cannot be watched stops the start, and validation does not check it', async (t) => {
  const layers = [{ name: 'disk', disk_layer: { symlink_root: join(tempDir(t), 'absent/current') } }];
  const config = bootstrap({ listeners: [], clusters: [], extra: { layered_runtime: { layers } } });
  const baton = await startBaton(t, { config, wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, /runtime cannot be watched: ENOENT.*; create the directory .*\/absent$/m);
  const validating = await startBaton(t, { config, wait: 'spawned', args: ['--mode', 'validate'] });
  t.equal((await validating.exited).code, 0);
});
