import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { FileWatch, type FileWatchOptions, fileIdentity } from '../../../src/common/files/file-watch.js';
import { tempDir, waitFor } from '../../e2e/harness/index.js';
import { cannotFailCalls, failCalls } from '../../e2e/harness/system-calls.js';

/** Watches a file and counts the reported changes. */
function watched(t: Test, path: string, identity = fileIdentity(path), options: FileWatchOptions = {}) {
  const seen = { changes: 0, failures: [] as string[] };
  const events = { changed: () => void seen.changes++, failed: (message: string) => void seen.failures.push(message) };
  const watch = new FileWatch(path, identity, events, options);
  t.teardown(() => watch.close());
  // The watch itself does not keep the process alive.
  const keepAlive = setInterval(() => {}, 1000);
  t.teardown(() => clearInterval(keepAlive));
  return seen;
}

t.test('writes to a file and its replacement are reported', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'config.yaml');
  writeFileSync(path, 'one');
  const seen = watched(t, path);
  appendFileSync(path, ' two');
  await waitFor(() => seen.changes === 1);
  writeFileSync(join(directory, 'new'), 'three');
  renameSync(join(directory, 'new'), path);
  await waitFor(() => seen.changes === 2);
  appendFileSync(path, ' four');
  await waitFor(() => seen.changes === 3, { what: 'a change of the new file' });
});

t.test('writing in pieces is one change, and changes of other files in the directory are not reported', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'config.yaml');
  writeFileSync(path, 'one');
  const seen = watched(t, path);
  for (let piece = 0; piece < 50; piece++) appendFileSync(path, 'piece\n');
  writeFileSync(join(directory, 'other'), 'x');
  await waitFor(() => seen.changes > 0);
  writeFileSync(join(directory, 'other'), 'y');
  writeFileSync(`${path}.swp`, 'y');
  writeFileSync(path, 'the end');
  await waitFor(() => seen.changes > 1);
  t.equal(seen.changes, 2);
});

t.test("a swapped link to the file's directory is followed, as Kubernetes updates ConfigMaps", async (t) => {
  const directory = tempDir(t);
  for (const version of ['v1', 'v2', 'v3']) {
    mkdirSync(join(directory, version));
    writeFileSync(join(directory, version, 'config.yaml'), version);
  }
  symlinkSync('v1', join(directory, '..data'));
  symlinkSync('..data/config.yaml', join(directory, 'config.yaml'));
  const seen = watched(t, join(directory, 'config.yaml'));
  const swap = (version: string) => {
    symlinkSync(version, join(directory, '..tmp'));
    renameSync(join(directory, '..tmp'), join(directory, '..data'));
  };
  swap('v2');
  await waitFor(() => seen.changes === 1);
  rmSync(join(directory, 'v1'), { recursive: true });
  swap('v3');
  await waitFor(() => seen.changes === 2);
  appendFileSync(join(directory, 'v3', 'config.yaml'), ' more');
  await waitFor(() => seen.changes === 3, { what: 'a change behind the new link' });
  t.strictSame(seen.failures, []);
});

t.test(
  'a removed file is reported when it exists again, and a change made before the watch began is reported',
  async (t) => {
    const directory = tempDir(t);
    const path = join(directory, 'config.yaml');
    writeFileSync(path, 'one');
    const before = fileIdentity(path);
    writeFileSync(path, 'one and more');
    const seen = watched(t, path, before);
    await waitFor(() => seen.changes === 1);
    rmSync(path);
    writeFileSync(join(directory, 'other'), 'two');
    renameSync(join(directory, 'other'), path);
    await waitFor(() => seen.changes === 2);
    t.strictSame(seen.failures, []);
  },
);

t.test(
  'missing directories are watched until they exist, and directories that are created again are followed',
  async (t) => {
    const directory = tempDir(t);
    const path = join(directory, 'some', 'where', 'config.yaml');
    const seen = watched(t, path, '');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'one');
    await waitFor(() => seen.changes === 1);
    rmSync(join(directory, 'some'), { recursive: true });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'two');
    await waitFor(() => seen.changes === 2);
    t.strictSame(seen.failures, []);
  },
);

t.test('with `within`, the file is checked when an entry is moved into that directory', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'config.yaml');
  const moved = join(directory, 'moved');
  writeFileSync(path, 'one');
  const seen = watched(t, path, fileIdentity(path), { within: { path: moved, seesContent: false } });
  mkdirSync(moved);
  writeFileSync(path, 'changed');
  writeFileSync(join(directory, 'marker'), '');
  renameSync(join(directory, 'marker'), join(moved, 'marker'));
  await waitFor(() => seen.changes === 1);
  t.strictSame(seen.failures, []);
});

t.test('with `seesContent`, the file is checked when an entry in the directory is written', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'config.yaml');
  const other = join(directory, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'marker'), '');
  writeFileSync(path, 'one');
  const seen = watched(t, path, fileIdentity(path), { within: { path: other, seesContent: true } });
  writeFileSync(path, 'changed');
  appendFileSync(join(other, 'marker'), 'x');
  await waitFor(() => seen.changes === 1);
  t.strictSame(seen.failures, []);
});

t.test('a file is polled even when no event arrives', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'config.yaml');
  const quiet = join(directory, 'quiet');
  mkdirSync(quiet);
  writeFileSync(path, 'one');
  // The quiet directory gets no events.
  const seen = watched(t, path, fileIdentity(path), { within: { path: quiet, seesContent: false }, pollMs: 10 });
  appendFileSync(path, ' two');
  await waitFor(() => seen.changes === 1);
  appendFileSync(path, ' three');
  await waitFor(() => seen.changes === 2);
});

t.test(
  'a file in a directory that cannot be watched is checked periodically, and watched when that is possible',
  { skip: cannotFailCalls },
  async (t) => {
    const path = join(tempDir(t), 'config.yaml');
    writeFileSync(path, 'one');
    const recover = await failCalls(t, process.pid, 'inotify_add_watch', 'ENOSPC');
    const seen = watched(t, path);
    t.match(seen.failures, [/cannot be watched: ENOSPC/]);
    appendFileSync(path, ' two');
    await waitFor(() => seen.changes === 1);
    await recover();
    appendFileSync(path, ' three');
    await waitFor(() => seen.changes === 2);
    t.equal(seen.failures.length, 1, 'reported once');
  },
);
