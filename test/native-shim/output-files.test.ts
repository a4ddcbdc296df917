// Files at user-given paths are written where the user may have meant, whatever other users place in the way.

import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import { loadShim } from '../../src/io/shim.js';
import { endsWithTest, tempDir, waitFor } from '../e2e/harness/index.js';

const shim = loadShim();
const SHIM = new URL('../../src/io/shim.js', import.meta.url).href;
/** An arbitrary user: not root, and not the user of this process. */
const OTHER_USER = 12_345;
const needsRoot = process.getuid!() === 0 ? false : 'only root makes files of other users';

/** A directory for each kind: `mode` is that of the directory for links and files. */
function rig(t: Test, mode: number) {
  const root = tempDir(t);
  const open = join(root, 'open');
  const secret = join(root, 'secret');
  for (const directory of [open, secret]) mkdirSync(directory);
  chmodSync(root, 0o755);
  chmodSync(open, mode);
  const victim = join(secret, 'victim');
  return {
    open,
    secret,
    victim,
    path: join(open, 'file'),
    link(owner: number, target = victim, name = 'file') {
      symlinkSync(target, join(open, name));
      lchownSync(join(open, name), owner, owner);
    },
  };
}

function append(path: string, text: string): void {
  const file = shim.openOutput(path, true);
  try {
    writeSync(file.fd, text);
  } finally {
    void file.close();
  }
}

/** Each way to write to a path. */
const WAYS: readonly [string, (path: string) => unknown][] = [
  ['openOutput', (path) => append(path, 'text')],
  ['openOutputLater', async (path) => (await shim.openOutputLater(path, true)).close()],
  ['replaceFile', (path) => shim.replaceFile(path, Buffer.from('text'))],
  ['checkOutput', (path) => shim.checkOutput(path)],
];

async function refused(t: Test, path: string, expected: { code: string; message?: RegExp }): Promise<void> {
  for (const [name, way] of WAYS) await t.rejects(async () => way(path), expected, name);
}

for (const [what, mode] of [
  ['sticky', 0o1777],
  ['other', 0o777],
] as const) {
  t.test(
    `another user's link in a ${what} directory writable by all is not followed`,
    { skip: needsRoot },
    async (t) => {
      const { open, secret, victim, path, link } = rig(t, mode);
      link(OTHER_USER);
      const message = new RegExp(
        `'${path}' is a link of user ${OTHER_USER} in a directory to which all users may write`,
      );
      await refused(t, path, { code: 'EPERM', message });
      writeFileSync(victim, 'precious');
      await refused(t, path, { code: 'EPERM', message });
      link(OTHER_USER, secret, 'directory');
      await refused(t, join(open, 'directory/victim'), { code: 'EPERM', message: /\/directory' is a link of user/ });
      link(0, 'directory/victim', 'root');
      await refused(t, join(open, 'root'), { code: 'EPERM', message: /\/directory' is a link of user/ });
      t.equal(readFileSync(victim, 'utf8'), 'precious');
      t.strictSame(readdirSync(secret), ['victim']);
    },
  );
}

t.test('other links are followed', { skip: needsRoot }, async (t) => {
  for (const [mode, owner] of [
    [0o1777, 0],
    [0o777, 0],
    [0o755, OTHER_USER],
    [0o775, OTHER_USER],
  ] as const) {
    const { open, victim, path, link } = rig(t, mode);
    link(owner);
    for (const [, way] of WAYS) await way(path);
    t.equal(readFileSync(victim, 'utf8'), 'text', `${mode.toString(8)}, ${owner}`);
    link(owner, '..', 'up');
    append(join(open, 'up/open/../secret/victim'), ' and more');
    t.equal(readFileSync(victim, 'utf8'), 'text and more');
    t.ok(lstatSync(path).isSymbolicLink(), 'the target of the link is replaced');
  }
});

t.test('a process of another user follows its own links and those of root', { skip: needsRoot }, async (t) => {
  const { open, secret, link } = rig(t, 0o1777);
  chownSync(secret, OTHER_USER, OTHER_USER);
  link(OTHER_USER, join(secret, 'own'), 'own');
  link(0, join(secret, 'root'), 'root');
  link(OTHER_USER + 1, join(secret, 'other'), 'other');
  const script = `
    const shim = (await import(${JSON.stringify(SHIM)})).loadShim();
    process.setgroups([]); process.setgid(${OTHER_USER}); process.setuid(${OTHER_USER});
    for (const name of ['own', 'root', 'other']) {
      try { shim.openOutput(${JSON.stringify(open)} + '/' + name, true); console.log(name); } catch (error) { console.log(error.code); }
    }`;
  const answer = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  t.equal(answer, 'own\nroot\nEPERM\n');
  t.strictSame(readdirSync(secret).sort(), ['own', 'root']);
});

t.test(
  "another user's file in a sticky directory is replaced instead of written to",
  { skip: needsRoot },
  async (t) => {
    const { path } = rig(t, 0o1777);
    writeFileSync(path, 'trap');
    chmodSync(path, 0o666);
    chownSync(path, OTHER_USER, OTHER_USER);
    for (const [name, way] of WAYS.filter(([name]) => name !== 'replaceFile')) {
      await t.rejects(async () => way(path), { code: 'EPERM', message: /belongs to user 12345/ }, name);
    }
    t.equal(readFileSync(path, 'utf8'), 'trap');
    shim.replaceFile(path, Buffer.from('text'));
    t.match(statSync(path), { uid: 0, mode: 0o100644 });
    rmSync(path);
    execFileSync('mkfifo', ['-m', '666', path]);
    chownSync(path, OTHER_USER, OTHER_USER);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    await refused(t, path, { code: 'EPERM', message: /belongs to user 12345/ });
    closeSync(reader);
  },
);

t.test('files with several hard links in a directory writable by all are not written to', async (t) => {
  const { victim, path } = rig(t, 0o777);
  writeFileSync(victim, 'precious');
  linkSync(victim, path);
  for (const [name, way] of WAYS.filter(([name]) => name !== 'replaceFile')) {
    await t.rejects(async () => way(path), { code: 'EPERM', message: /hard links/ }, name);
  }
  shim.replaceFile(path, Buffer.from('text'));
  t.equal(readFileSync(path, 'utf8'), 'text');
  t.equal(readFileSync(victim, 'utf8'), 'precious');
});

t.test('while another user swaps files and links, nothing is written through them', { skip: needsRoot }, async (t) => {
  const { open, victim, path } = rig(t, 0o777);
  const swapping = `
    const { lchownSync, linkSync, renameSync, rmSync, symlinkSync, writeFileSync } = require('node:fs');
    const [open, victim, path] = process.argv.slice(1);
    console.log('ready');
    for (let turn = 0; ; turn++) {
      const next = open + '/next';
      if (turn % 3 === 0) { symlinkSync(victim, next); lchownSync(next, ${OTHER_USER}, ${OTHER_USER}); }
      else if (turn % 3 === 1) writeFileSync(next, '');
      else { rmSync(path, { force: true }); continue; }
      renameSync(next, path);
    }`;
  const attacker = endsWithTest(t, spawn(process.execPath, ['-e', swapping, open, victim, path]));
  await new Promise((resolve) => attacker.stdout!.once('data', resolve));
  const outcomes = new Set<string>();
  for (let turn = 0; turn < 20_000 || outcomes.size < 2; turn++) {
    try {
      if (turn % 2 === 0) append(path, 'text');
      else shim.replaceFile(path, Buffer.from('text'));
      outcomes.add('written');
    } catch (error) {
      outcomes.add((error as NodeJS.ErrnoException).code!);
    }
    // The descriptors are closed on other threads.
    if (turn % 500 === 0) await new Promise(setImmediate);
  }
  t.notOk(existsSync(victim), [...outcomes].join(', '));
  t.ok(outcomes.has('EPERM') && outcomes.has('written'));
});

t.test('opening a path that is not a regular file does not block', async (t) => {
  const { open, path } = rig(t, 0o755);
  execFileSync('mkfifo', [path]);
  for (const [name, way] of WAYS.filter(([name]) => name !== 'checkOutput')) {
    await t.rejects(async () => way(path), { code: 'ENXIO', message: /the pipe has no reader/ }, name);
  }
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  append(path, 'one ');
  shim.replaceFile(path, Buffer.from('two'));
  const content = Buffer.alloc(100);
  t.equal(content.toString('utf8', 0, readSync(reader, content)), 'one two');
  closeSync(reader);
  for (const directory of [open, `${open}/`, `${open}/.`, '/', '.', '..']) {
    await refused(t, directory, { code: 'EISDIR' });
  }
  await refused(t, join(open, 'none/file'), { code: 'ENOENT' });
  symlinkSync('none/file', join(open, 'astray'));
  await refused(t, join(open, 'astray'), { code: 'ENOENT' });
  await refused(t, join(path, 'file'), { code: 'ENOTDIR' });
  await refused(t, '', { code: 'ENOENT' });
  t.throws(() => shim.openOutput('a\0b', true), TypeError);
  symlinkSync('loop', join(open, 'loop'));
  await refused(t, join(open, 'loop'), { code: 'ELOOP' });
  for (const device of ['/dev/null', '/dev/../dev/null']) for (const [, way] of WAYS) await way(device);
});

t.test('descriptors can be opened by their names in /proc', async (t) => {
  const { path } = rig(t, 0o755);
  const fd = openSync(path, 'a');
  append(`/proc/self/fd/${fd}`, 'one');
  append(`/dev/fd/${fd}`, ' two');
  t.equal(readFileSync(path, 'utf8'), 'one two');
  shim.replaceFile(`/proc/self/fd/${fd}`, Buffer.from('three'));
  t.equal(readFileSync(path, 'utf8'), 'three');
  closeSync(fd);
  append(`/proc/self/root${path}`, ' four');
  t.equal(readFileSync(path, 'utf8'), 'three four');
});

t.test('new files have mode 0644 or less, and a replaced file is never seen partially written', async (t) => {
  const { open, path } = rig(t, 0o755);
  const umask = process.umask(0);
  t.teardown(() => process.umask(umask));
  append(path, '');
  t.equal(statSync(path).mode & 0o777, 0o644);
  shim.replaceFile(join(open, 'value'), Buffer.from('1'));
  t.equal(statSync(join(open, 'value')).mode & 0o777, 0o644);
  const { ino } = statSync(join(open, 'value'));
  shim.replaceFile(join(open, 'value'), Buffer.from('2'));
  t.not(statSync(join(open, 'value')).ino, ino);
  process.umask(0o077);
  append(join(open, 'private'), '');
  t.equal(statSync(join(open, 'private')).mode & 0o777, 0o600);
  t.strictSame(readdirSync(open).sort(), ['file', 'private', 'value'], 'no temporary file is left');
});

t.test('a file is written in place where no new one can be created', { skip: needsRoot }, async (t) => {
  const { secret, victim } = rig(t, 0o755);
  writeFileSync(victim, 'longer than the new text');
  chownSync(victim, OTHER_USER, OTHER_USER);
  const script = `
    const shim = (await import(${JSON.stringify(SHIM)})).loadShim();
    process.setgroups([]); process.setgid(${OTHER_USER}); process.setuid(${OTHER_USER});
    shim.replaceFile(${JSON.stringify(victim)}, Buffer.from('text'));
    shim.replaceFile(${JSON.stringify(join(secret, 'new'))}, Buffer.from('text'));`;
  t.throws(() => execFileSync(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' }), /EACCES/);
  t.equal(readFileSync(victim, 'utf8'), 'text');
  t.strictSame(readdirSync(secret), ['victim']);
});

t.test('the mode of sockets is set, and of nothing else that a path leads to', async (t) => {
  const { open, victim, path } = rig(t, 0o777);
  const server = createServer().listen(join(open, 'socket'));
  t.teardown(() => server.close());
  await waitFor(() => server.listening);
  shim.setSocketMode(join(open, 'socket'), 0o620);
  t.equal(statSync(join(open, 'socket')).mode & 0o777, 0o620);
  writeFileSync(victim, '', { mode: 0o600 });
  symlinkSync(victim, path);
  t.throws(() => shim.setSocketMode(path, 0o666), { code: 'ENOTSOCK' });
  t.throws(() => shim.setSocketMode(victim, 0o666), { code: 'ENOTSOCK' });
  t.equal(statSync(victim).mode & 0o777, 0o600);
});

t.test("sockets are not bound through another user's link", { skip: needsRoot }, async (t) => {
  const { open, secret, link } = rig(t, 0o1777);
  link(OTHER_USER, secret, 'away');
  link(0, secret, 'root');
  const at = (path: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const options = { reusePort: false, freebind: false, transparent: false, v6Only: true };
  for (const bind of [
    (path: string) => shim.openListenSocket(at(path), options),
    (path: string) => shim.openMeetingSocket(at(path)),
  ]) {
    t.throws(() => bind(join(open, 'away/socket')), { code: 'EPERM', message: /away' is a link of user 12345/ });
    t.strictSame(readdirSync(secret), []);
    shim.closeDescriptor(bind(join(open, 'root/socket')));
    rmSync(join(secret, 'socket'));
  }
});

t.test('a file is closed once, at the latest with its thread', async (t) => {
  const { path } = rig(t, 0o755);
  const isOpen = () =>
    readdirSync('/proc/self/fd').some((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`) === path;
      } catch {
        return false;
      }
    });
  const file = shim.openOutput(path, true);
  t.ok(isOpen());
  await file.close();
  t.notOk(isOpen());
  const other = openSync('/dev/null', 'r');
  await file.close();
  t.doesNotThrow(() => closeSync(other), 'the number is not closed when another file has it');
  const script = `import(${JSON.stringify(SHIM)}).then(({ loadShim }) => {
    globalThis.files = [loadShim().openOutput(${JSON.stringify(path)}, true)];
    loadShim().openOutputLater(${JSON.stringify(path)}, true).then((file) => { globalThis.files.push(file); process.exit(); });
  })`;
  const warnings: Error[] = [];
  process.on('warning', (warning) => warnings.push(warning));
  const worker = new Worker(script, { eval: true });
  await new Promise((resolve) => worker.once('exit', resolve));
  t.notOk(isOpen());
  renameSync(path, `${path}.old`);
  t.strictSame(warnings, []);
});
