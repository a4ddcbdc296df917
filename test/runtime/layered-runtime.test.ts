import {
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { runSync } from '../../src/common/time/next-turn.js';
import type { LayeredRuntime as LayeredRuntimeConfig, RuntimeLayer } from '../../src/config/generated/api.js';
import { MAX_ADMIN_CHARACTERS, MAX_ADMIN_KEYS, readAdminEntries } from '../../src/runtime/admin-layer.js';
import { MAX_DEPTH, MAX_FILE_BYTES } from '../../src/runtime/disk-layer.js';
import { LayeredRuntime } from '../../src/runtime/layered-runtime.js';
import type { RuntimeChange } from '../../src/runtime/snapshot.js';
import { RuntimeStats } from '../../src/stats/layouts/runtime.js';
import { StatsStore } from '../../src/stats/store.js';
import { waitFor } from '../e2e/harness/wait-for.js';

const ADMIN: RuntimeLayer = { name: 'admin', admin_layer: {} };

function start(t: Test, config: LayeredRuntimeConfig | undefined) {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('runtime.', RuntimeStats);
  const changes: RuntimeChange[] = [];
  const runtime = new LayeredRuntime({
    config,
    serviceCluster: 'front',
    stats: store.scope(ref),
    changed: (change) => changes.push(change),
  });
  t.teardown(() => runtime.close());
  return {
    runtime,
    changes,
    modify: (texts: Iterable<readonly [string, string]>) => runtime.modify(runSync(readAdminEntries(texts))),
    names: () => runtime.layers.map((layer) => layer.name),
    text: (key: string) => runtime.runtime.get(key)?.text,
    stat: (name: keyof typeof RuntimeStats.at) => store.valueOf(ref, RuntimeStats.at[name]),
  };
}

/** Writes files, keyed by path, below a directory. */
function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function disk(root: string, more: NonNullable<RuntimeLayer['disk_layer']> = {}, name = 'disk'): RuntimeLayer {
  return { name, disk_layer: { symlink_root: root, subdirectory: 'app', ...more } };
}

t.test('later layers override earlier ones, and nested keys of static layers get dots', async (t) => {
  const { names, stat, text } = start(t, {
    layers: [
      { name: 'base', static_layer: { a: { b: 1, c: { d: 'deep' } }, flag: false, share: { numerator: 3 } } },
      { name: 'more', static_layer: { 'a.b': 2 } },
      ADMIN,
    ],
  });
  t.same(names(), ['base', 'more', 'admin']);
  t.equal(text('a.b'), '2');
  t.equal(text('a.c.d'), 'deep');
  t.equal(text('flag'), 'false');
  t.equal(text('share'), '{"numerator":3}');
  t.equal(stat('num_layers'), 3);
  t.equal(stat('num_keys'), 4);
  t.equal(stat('load_success'), 1);
});

t.test('the admin layer sets and removes values; without it, nothing can be set', async (t) => {
  const with_ = start(t, { layers: [{ name: 'base', static_layer: { key: 1 } }, ADMIN] });
  t.ok(
    with_.modify([
      ['key', '5'],
      ['other', 'x'],
    ]),
  );
  t.equal(with_.text('key'), '5');
  t.equal(with_.stat('admin_overrides_active'), 1);
  t.same(Object.fromEntries(with_.changes.at(-1)!.entries.map(([key, value]) => [key, value?.text])), {
    key: '5',
    other: 'x',
  });
  t.ok(
    with_.modify([
      ['key', ''],
      ['other', ''],
      ['never', ''],
    ]),
  );
  t.equal(with_.text('key'), '1', 'the value of the lower layer is restored');
  t.equal(with_.text('other'), undefined);
  t.equal(with_.stat('admin_overrides_active'), 0);

  const without = start(t, { layers: [{ name: 'base', static_layer: { key: 1 } }] });
  t.notOk(without.modify([['key', '5']]));
  t.equal(without.text('key'), '1');
  const absent = start(t, undefined);
  t.same(absent.names(), []);
  t.notOk(absent.modify([['key', '5']]));
  const empty = start(t, {});
  t.same(empty.names(), ['']);
  t.ok(empty.modify([['key', '5']]));
  t.equal(empty.text('key'), '5');
});

t.test('a change contains only the keys whose values change', async (t) => {
  const { changes, modify, runtime, stat, text } = start(t, {
    layers: [{ name: 'base', static_layer: { k7: 'base', flag: true } }, { name: 'remote', rtds_layer: {} }, ADMIN],
  });
  const many = Array.from({ length: 100_000 }, (_, i) => [`k${i}`, '1'] as const);
  modify(many);
  t.equal(changes.at(-1)!.entries.length, 100_000);
  const named = () => changes.at(-1)!.entries.map(([key, value]) => [key, value?.text]);
  modify([
    ['k1', '2'],
    ['k2', '1'],
    ['k3', ''],
    ['k7', ''],
  ]);
  t.same(named(), [
    ['k1', '2'],
    ['k3', undefined],
    ['k7', 'base'],
  ]);
  runtime.setLayer('remote', { k7: 'remote', k1: 'hidden', flag: 'true' });
  t.same(named(), [['k7', 'remote']]);
  runtime.setLayer('remote', { more: 1 });
  t.same(named(), [
    ['k7', 'base'],
    ['more', '1'],
  ]);
  t.equal(text('k1'), '2');
  t.equal(stat('num_keys'), 100_001);
  const keys = runSync(runtime.keysInSteps());
  t.same(keys, [...runtime.runtime.values.keys()].sort());
  t.equal(runSync(runtime.keysInSteps()), keys, 'sorted once');
  modify([['k1', '3']]);
  t.equal(runSync(runtime.keysInSteps()), keys, 'unchanged keys are not sorted again');
  modify([['new', '3']]);
  t.equal(runSync(runtime.keysInSteps()).length, keys.length + 1);
});

t.test('the admin layer is bounded, and a request that exceeds its bounds changes nothing', async (t) => {
  const { changes, modify, stat } = start(t, { layers: [ADMIN] });
  const range = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => [`k${from + i}`, '1'] as const);
  modify(range(0, MAX_ADMIN_KEYS));
  const error = { code: 'RUNTIME_LAYER', message: `the admin layer of runtime holds at most ${MAX_ADMIN_KEYS} keys` };
  t.throws(() => modify([['k1', '2'], ...range(MAX_ADMIN_KEYS, MAX_ADMIN_KEYS + 1)]), error);
  t.equal(changes.length, 1);
  t.equal(stat('num_keys'), MAX_ADMIN_KEYS);
  t.ok(
    modify([
      ['k0', ''],
      ['other', '1'],
    ]),
    'one key replaces another',
  );
  t.ok(modify(range(0, MAX_ADMIN_KEYS).map(([key]) => [key, ''])));
  const large = 'x'.repeat(MAX_ADMIN_CHARACTERS / 2);
  t.ok(modify([['one', large]]));
  t.throws(() => modify([['two', large]]), { message: /holds at most 16777216 characters of keys and values/ });
  t.ok(
    modify([
      ['one', ''],
      ['two', large],
    ]),
  );
});

t.test('an empty value hides no value of a lower layer', async (t) => {
  const root = t.testdir();
  write(root, { 'app/share': '# not decided yet\n', 'app/only': '' });
  const { runtime, stat, text } = start(t, {
    layers: [
      { name: 'base', static_layer: { share: 7, flag: 'on' } },
      { name: 'more', static_layer: { flag: '' } },
      disk(root),
    ],
  });
  t.equal(text('flag'), 'on');
  t.equal(runtime.runtime.get('share')?.integer, 7);
  t.equal(text('only'), '');
  t.equal(stat('num_keys'), 3);
});

t.test('files of a directory become keys and values', async (t) => {
  const root = t.testdir();
  write(root, {
    'app/a/b': '# what it is for\n\n 17 \n',
    'app/a/c/d': 'two\nlines\n\n',
    'app/empty': '# nothing yet\n',
    'app/front/a/b': 'not of this layer',
    'override/front/top': '1',
    'override/back/top': '2',
  });
  symlinkSync('a/b', join(root, 'app/link'));
  const override = disk(root, { subdirectory: 'override', append_service_cluster: true }, 'override');
  const { names, runtime, stat, text } = start(t, { layers: [disk(root), override] });
  t.same(names(), ['disk', 'override']);
  t.equal(runtime.runtime.get('a.b')?.integer, 17);
  t.equal(runtime.runtime.get('link')?.integer, 17);
  t.equal(text('a.c.d'), 'two\nlines');
  t.equal(text('empty'), '');
  t.equal(text('top'), '1');
  t.equal(stat('override_dir_exists'), 1);
  const one = start(t, { layers: [disk(root), disk(root, { subdirectory: 'absent' }, 'absent')] });
  t.same(one.names(), ['disk'], 'a missing directory is neither a layer nor an error');
  t.same([one.stat('load_error'), one.stat('load_success'), one.stat('num_layers')], [0, 1, 1]);
  t.equal(one.stat('override_dir_not_exists'), 1);
});

t.test('a tree that cannot be loaded is skipped as a whole', async (t) => {
  const deep = `${'d/'.repeat(MAX_DEPTH)}key`;
  const bad: [what: string, make: (app: string) => void][] = [
    ['too deep', (app) => write(app, { [deep]: '1' })],
    ['a loop of links', (app) => symlinkSync('.', join(app, 'self'))],
    ['a link to nothing', (app) => symlinkSync('nowhere', join(app, 'dangling'))],
    ['a reserved name', (app) => write(app, { 'share/numerator': '5' })],
    [
      'a huge file',
      (app) => {
        write(app, { huge: '' });
        truncateSync(join(app, 'huge'), MAX_FILE_BYTES + 1);
      },
    ],
  ];
  for (const [what, make] of bad) {
    const root = join(t.testdir(), 'root');
    write(root, { 'app/fine': '1' });
    make(join(root, 'app'));
    const base: RuntimeLayer = { name: 'base', static_layer: { fine: 0 } };
    const { names, stat, text } = start(t, { layers: [base, disk(root), ADMIN] });
    t.same(names(), ['base', 'admin'], what);
    t.equal(text('fine'), '0', what);
    t.same([stat('load_error'), stat('load_success'), stat('num_layers')], [1, 0, 2], what);
  }
  const root = t.testdir();
  write(root, { [`app/${deep.slice(2)}`]: '1' });
  t.same(start(t, { layers: [disk(root)] }).names(), ['disk'], 'the maximum depth is allowed');
});

t.test('a swapped link and moves into the root are detected, overrides are kept, and edits are ignored', async (t) => {
  const directory = t.testdir();
  const current = join(directory, 'current');
  write(directory, { 'v1/app/key': '1', 'v2/app/key': '2', 'v3/key': '4' });
  symlinkSync('v1', current);
  const { changes, modify, runtime, stat, text } = start(t, { layers: [disk(current), ADMIN] });
  runtime.watch();
  modify([['mine', 'kept']]);
  const loads = () => stat('load_success');

  writeFileSync(join(directory, 'v1/app/key'), '10');
  symlinkSync('v2', join(directory, 'new'));
  renameSync(join(directory, 'new'), current);
  await waitFor(() => text('key') === '2', { what: 'the tree behind the new link' });
  t.notOk(
    changes.some(({ entries }) => entries.some(([key, value]) => key === 'key' && value?.text === '10')),
    'the edit was ignored',
  );
  t.equal(text('mine'), 'kept');
  t.equal(stat('admin_overrides_active'), 1);

  renameSync(join(directory, 'v2/app'), join(directory, 'v2/away'));
  await waitFor(() => text('key') === undefined, { what: 'the tree that is gone' });
  renameSync(join(directory, 'v3'), join(directory, 'v2/app'));
  await waitFor(() => text('key') === '4', { what: 'the tree that was moved in' });
  t.equal(text('mine'), 'kept');
  t.ok(loads()! >= 5);
});

t.test('a file that is created in the root is read completely, even if it is written slowly', async (t) => {
  const root = t.testdir();
  write(root, { key: '1' });
  const { runtime, text } = start(t, { layers: [disk(root, { subdirectory: '' })] });
  runtime.watch();
  const file = openSync(join(root, 'made'), 'w');
  t.teardown(() => closeSync(file));
  await waitFor(() => text('made') === '', { what: 'the empty file' });
  writeSync(file, '4');
  await waitFor(() => text('made') === '4', { what: 'its beginning' });
  writeSync(file, '2');
  await waitFor(() => text('made') === '42', { what: 'the rest' });
});

t.test('a change before watch() is detected too', async (t) => {
  const directory = t.testdir();
  write(directory, { 'v1/app/key': '1', 'v2/app/key': '2' });
  symlinkSync('v1', join(directory, 'current'));
  const { runtime, stat, text } = start(t, { layers: [disk(join(directory, 'current'))] });
  symlinkSync('v2', join(directory, 'new'));
  renameSync(join(directory, 'new'), join(directory, 'current'));
  runtime.watch();
  await waitFor(() => text('key') === '2', { what: 'the tree behind the new link' });
  t.equal(stat('load_success'), 2);
});

t.test('a large tree is read without blocking the thread, and consistently even if it changes meanwhile', async (t) => {
  const directory = t.testdir();
  const files = (value: string) =>
    Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`app/d${i % 20}/f${i}`, value]));
  write(join(directory, 'v1'), files('1'));
  write(join(directory, 'v2'), files('2'));
  write(join(directory, 'v3'), files('3'));
  const current = join(directory, 'current');
  symlinkSync('v1', current);
  const { changes, runtime, text } = start(t, { layers: [disk(current)] });
  runtime.watch();
  for (const version of ['v2', 'v3']) {
    symlinkSync(version, join(directory, 'new'));
    renameSync(join(directory, 'new'), current);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  await waitFor(() => text('d1.f1') === '3', { what: 'the last tree' });
  for (const { entries } of changes) t.equal(new Set(entries.map(([, value]) => value?.text)).size, 1);
});

t.test('watching a root without a parent directory fails', async (t) => {
  const { runtime } = start(t, { layers: [disk(join(t.testdir(), 'absent/current'))] });
  t.throws(() => runtime.watch(), { code: 'RUNTIME_LAYER', remedy: /create the directory .*\/absent$/ });
});
