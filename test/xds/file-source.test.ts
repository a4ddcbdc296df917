// Subscriptions to a file of resources that begin while it is read.

import t from 'tap';
import { StatsStore } from '../../src/stats/store.js';
import { FileSource } from '../../src/xds/file-source.js';
import type { Update } from '../../src/xds/resource.js';
import { type ReadFile, ResourceFileError } from '../../src/xds/resource-reader.js';
import { ResourceFile } from '../e2e/dynamic/resource-file.js';
import { tempDir, waitFor } from '../e2e/harness/index.js';

t.test('a subscription that begins while a bad version is read gets the previous one', async (t) => {
  const file = new ResourceFile(tempDir(t), 'clusters');
  file.writeText('good');
  const reads: { resolve(content: ReadFile): void; reject(error: ResourceFileError): void }[] = [];
  const reader = {
    read: () => Promise.reject(new Error('not asked for')),
    readText: () => Promise.reject(new Error('unused')),
    readFile: () => new Promise<ReadFile>((resolve, reject) => reads.push({ resolve, reject })),
    close() {},
  };
  const store = new StatsStore({ workers: 1 });
  const failures: unknown[] = [];
  const failed = (...what: unknown[]) => failures.push(what);
  const source = new FileSource({
    path: file.path,
    watch: {},
    type: 'cluster',
    reader,
    store,
    failed,
  });
  t.teardown(() => source.close());
  const subscribe = (statPrefix: string) => {
    const notifications: string[] = [];
    const watcher = {
      update({ resources, version }: Update) {
        notifications.push(`${version}: ${resources.map(({ name }) => name).join()}`);
        return [];
      },
      fetchTimedOut: () => void notifications.push('nothing'),
    };
    source.subscribe({ source: {}, type: 'cluster', names: '*', statPrefix, watcher });
    return notifications;
  };

  const first = subscribe('first.');
  await waitFor(() => reads.length === 1, { what: 'the first reading' });
  const resources = [{ name: 'a', version: '1', message: {}, aliases: [], sensitive: [] }];
  reads[0]!.resolve({ version: '1', resources, refused: [], ttlMs: new Map() });
  await waitFor(() => first.length === 1, { what: 'the good version' });

  file.writeText('bad');
  await waitFor(() => reads.length === 2, { what: 'the second reading' });
  const later = subscribe('later.');
  // A new subscriber is notified one turn later, unless the file is being read.
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  t.same(later, [], 'there may be something newer');
  reads[1]!.reject(new ResourceFileError('no YAML', 'garbled'));
  await waitFor(() => later.length > 0, { what: 'what there is' });
  t.same(later, ['1: a']);
  t.same(first, ['1: a'], 'a subscriber with the content is not notified again');
  t.equal(store.value('first.update_failure'), 1);
  t.equal(store.value('later.update_failure'), 1);
  t.equal(store.value('later.update_success'), 1);
  t.same(failures, []);
});

t.test('a file that has resources of other names only is rejected, as in Envoy', async (t) => {
  const file = new ResourceFile(tempDir(t), 'routes');
  file.writeText('first');
  const contents = [['a'], ['b', 'c'], [], ['c', 'a']];
  const reader = {
    read: () => Promise.reject(new Error('not asked for')),
    readText: () => Promise.reject(new Error('unused')),
    readFile: async () => {
      const resources = contents[0]!.map((name) => ({ name, version: '', message: {}, aliases: [], sensitive: [] }));
      contents.shift();
      return { version: `${4 - contents.length}`, resources, refused: [], ttlMs: new Map() };
    },
    close() {},
  };
  const store = new StatsStore({ workers: 1 });
  const source = new FileSource({ path: file.path, watch: {}, type: 'route', reader, store, failed: t.fail as never });
  t.teardown(() => source.close());
  const subscribe = (name: string) => {
    const notifications: string[] = [];
    const watcher = {
      update({ resources, version }: Update) {
        notifications.push(`${version}: ${resources.map((each) => each.name).join()}`);
        return [];
      },
      fetchTimedOut: () => void notifications.push('nothing'),
    };
    source.subscribe({ source: {}, type: 'route', names: new Set([name]), statPrefix: `${name}.`, watcher });
    return notifications;
  };
  const [a, b] = [subscribe('a'), subscribe('b')];
  for (const [index, text] of ['first', 'second', 'third', 'fourth'].entries()) {
    if (index > 0) file.writeText(text);
    await waitFor(
      () => store.value('a.update_attempt') === index + 1 && store.value('b.update_attempt') === index + 1,
      {
        what: `the ${text} version`,
      },
    );
  }
  t.same(a, ['1: a', '3: ', '4: a'], 'the first version stays in use');
  t.same(b, ['nothing', '2: b', '3: ']);
  for (const name of ['a', 'b']) {
    t.equal(store.value(`${name}.update_rejected`), name === 'a' ? 1 : 2);
    t.equal(store.value(`${name}.update_success`), name === 'a' ? 3 : 2);
  }
});
