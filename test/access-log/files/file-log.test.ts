// Access log files: buffering, rotation, full disks, and lines of several threads and processes.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { createFileAccessLogger } from '../../../src/access-log/access-logger.js';
import { AccessLogFiles, type FileLogOptions } from '../../../src/access-log/files/file-log.js';
import { checkWritable } from '../../../src/access-log/files/writable.js';
import { initLogging } from '../../../src/log/logger.js';
import { endsWithTest, tempDir } from '../../e2e/harness/environment.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { tcpStream } from '../stream.js';

const directory = tempDir(t);
const processLog = join(directory, 'process.log');
initLogging({ path: processLog, format: '%l %v' });

let count = 0;
function setUp(options: FileLogOptions = {}, path = join(directory, `${count++}.log`)) {
  const files = new AccessLogFiles(options);
  const logger = createFileAccessLogger({ path, format: '%ROUTE_NAME%\n' }, files);
  const log = (routeName: string) => logger.log(tcpStream({ routeName }));
  return { files, logger, log, path, text: () => readFileSync(path, 'utf8') };
}

const accessLogUrl = new URL('../../../src/access-log/', import.meta.url).href;
const streamUrl = new URL('../stream.js', import.meta.url).href;
/** Defines `open()` for scripts in threads and processes. */
const PRELUDE = `
  const { createFileAccessLogger } = await import(${JSON.stringify(`${accessLogUrl}access-logger.js`)});
  const { AccessLogFiles } = await import(${JSON.stringify(`${accessLogUrl}files/file-log.js`)});
  const { tcpStream } = await import(${JSON.stringify(streamUrl)});
  const open = (path, options) => {
    const files = new AccessLogFiles(options);
    const logger = createFileAccessLogger({ path, format: '%ROUTE_NAME%\\n' }, files);
    return { files, logger, log: (routeName) => logger.log(tcpStream({ routeName })) };
  };
`;

type Stdio = 'ignore' | 'inherit' | 'pipe' | number;
function run(script: string, stdout: Stdio = 'pipe', stderr: Stdio = 'inherit'): ChildProcess {
  const code = `${PRELUDE}${script}`;
  const command = ['--input-type=module', '-e', code];
  return endsWithTest(t, spawn(process.execPath, command, { stdio: ['pipe', stdout, stderr] }));
}

/** Runs a script with a shell pipe as standard output. */
function runIntoPipe(script: string): ChildProcess {
  const command = ['-c', '"$0" --input-type=module -e "$1" | cat', process.execPath, script];
  return endsWithTest(t, spawn('sh', command, { stdio: ['ignore', 'pipe', 'inherit'] }));
}

/** Runs a script with a file size limit of 8 KiB, which simulates a full disk. Returns the exit status. */
async function runOnFullDisk(script: string): Promise<number | null> {
  const limited = ['--fsize=8192:unlimited', process.execPath];
  const command = [...limited, '--input-type=module', '-e', `${PRELUDE}${script}`];
  const child = endsWithTest(t, spawn('prlimit', command, { stdio: ['ignore', 'ignore', 'ignore'] }));
  const [code] = await once(child, 'exit');
  return code;
}

t.test('lines are written when the buffer is full or the flush interval has passed', async (t) => {
  const full = setUp({ flushMinBytes: 1000, flushIntervalMs: 3_600_000 });
  for (let i = 0; i < 9; i++) full.log('x'.repeat(100));
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(full.text(), '', 'lines stay in the buffer while it has room');
  t.equal(full.files.bufferedBytes, 909);
  full.log('x'.repeat(100));
  await waitFor(() => full.files.bufferedBytes === 0, { what: 'the full buffer to be written' });
  t.equal(full.text().length, 1010);
  t.equal(full.files.counters.writeBuffered, 10);
  t.equal(full.files.counters.writeCompleted, 1);
  t.equal(full.files.counters.flushedByTimer, 0);

  const old = setUp({ flushIntervalMs: 1 });
  old.log('first');
  await waitFor(() => old.text() === 'first\n', { what: 'the line to be written' });
  old.log('second');
  await waitFor(() => old.text() === 'first\nsecond\n', { what: 'the next line to be written' });
  t.equal(old.files.counters.flushedByTimer, 2);
  full.logger.close();
  old.logger.close();
});

t.test('loggers of one path share a file, which is closed with the last one after its lines are written', async (t) => {
  const { files, logger, log, path, text } = setUp();
  const other = createFileAccessLogger({ path, format: 'other %ROUTE_NAME%\n' }, files);
  log('a');
  other.log(tcpStream({ routeName: 'b' }));
  log('c');
  logger.close();
  other.log(tcpStream({ routeName: 'd' }));
  other.close();
  await waitFor(() => text() === 'a\nother b\nc\nother d\n', { what: 'all lines in order' });
  const again = setUp({}, path);
  again.log('e');
  await again.files.flush();
  t.ok(again.text().endsWith('other d\ne\n'), 'an existing file is appended to');
  again.logger.close();
});

t.test('a rotation loses no line, and later lines are written to the new file', async (t) => {
  const { files, logger, log, path, text } = setUp();
  log('before');
  renameSync(path, `${path}.1`);
  log('meanwhile');
  const reopened = files.reopenAll();
  log('during');
  await reopened;
  log('after');
  await files.flush();
  t.equal(readFileSync(`${path}.1`, 'utf8'), 'before\nmeanwhile\n');
  t.equal(text(), 'during\nafter\n');
  logger.close();
});

t.test('rotations and closed loggers leave no descriptor open', async (t) => {
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const keeper = setUp();
  // A file of an earlier test may still be open here and close meanwhile.
  const before = descriptors();
  for (let round = 0; round < 50; round++) {
    const { logger, log } = setUp();
    keeper.log('x');
    log('y');
    await keeper.files.reopenAll();
    logger.close();
  }
  await waitFor(() => descriptors() <= before, { what: 'all descriptors to be closed' });
  await keeper.files.flush();
  t.equal(keeper.text(), 'x\n'.repeat(50));
  keeper.logger.close();
});

t.test('a failed rotation is logged and keeps the old file in use', async (t) => {
  const folder = join(directory, 'folder');
  mkdirSync(folder);
  const { files, logger, log } = setUp({}, join(folder, 'a.log'));
  renameSync(folder, `${folder}.away`);
  await files.reopenAll();
  await files.reopenAll();
  t.equal(files.counters.reopenFailed, 2);
  log('still');
  await files.flush();
  t.equal(readFileSync(join(`${folder}.away`, 'a.log'), 'utf8'), 'still\n');
  t.match(readFileSync(processLog, 'utf8'), /error cannot reopen '.*a\.log': ENOENT.*; retrying/);
  logger.close();
});

t.test('a failed rotation is retried until it succeeds', async (t) => {
  const folder = join(directory, 'back-later');
  mkdirSync(folder);
  const { files, logger, log, path, text } = setUp({}, join(folder, 'a.log'));
  renameSync(folder, `${folder}.away`);
  await files.reopenAll();
  mkdirSync(folder);
  await waitFor(() => existsSync(path), { what: 'the file to be reopened' });
  // It is used at the latest from the next line on.
  const isNew = async () => {
    log('a line');
    await files.flush();
    return text() !== '';
  };
  await waitFor(isNew, { what: 'a line in the new file' });
  t.equal(files.counters.reopenFailed, 1);
  t.match(readFileSync(processLog, 'utf8'), /^info '.*back-later\/a\.log' is reopened$/m);
  logger.close();
});

t.test('a file that cannot be opened is refused', async (t) => {
  t.throws(() => setUp({}, join(directory, 'no', 'such', 'file')), {
    message: /^unable to open file '.*no\/such\/file': ENOENT/,
  });
  t.throws(() => setUp({}, directory), { message: /EISDIR/ });
});

t.test('checkWritable() neither opens nor creates the file', async (t) => {
  const link = (name: string, target: string) => {
    const path = join(directory, name);
    symlinkSync(target, path);
    return path;
  };
  mkdirSync(join(directory, 'there'));
  const makeable = link('to-makeable', join('there', 'new'));
  for (const path of [makeable, link('twice', makeable)]) t.doesNotThrow(() => checkWritable(path), path);
  t.notOk(existsSync(makeable));
  const nowhere = link('to-nowhere', join('missing', 'new'));
  for (const path of [nowhere, link('twice-nowhere', nowhere), link('loop', 'loop'), join(directory, 'there')]) {
    t.throws(() => checkWritable(path), { message: /^unable to open file '/ }, path);
  }
});

t.test('a full disk costs bounded memory, dropped lines are counted, and the failure is logged once', async (t) => {
  const { files, logger, log } = setUp({ flushMinBytes: 1000, maxPendingBytes: 10_100 }, '/dev/full');
  for (let i = 0; i < 1000; i++) log('x'.repeat(99));
  await files.flush();
  // The queue still has room for this line.
  log('x'.repeat(49));
  await files.flush();
  for (let i = 0; i < 10; i++) log('x'.repeat(99));
  const { writeBuffered, writeCompleted, writeFailed, dropped } = files.counters;
  t.equal(writeBuffered, 1011);
  t.equal(writeCompleted, 0);
  t.ok(writeFailed >= 1);
  t.equal(dropped, 910);
  t.ok(files.bufferedBytes <= 10_100, `${files.bufferedBytes} bytes wait`);
  await files.flush();
  t.equal(files.counters.writeFailed, writeFailed + 1, 'flush() retries once before it gives up');
  files.flushSync();
  const messages = readFileSync(processLog, 'utf8')
    .split('\n')
    .filter((line) => line.includes('/dev/full'));
  t.match(messages.sort(), [
    /error '\/dev\/full' accepts no more lines/,
    /error cannot write to '\/dev\/full': ENOSPC/,
  ]);
  logger.close();
});

t.test('a file may have the name of a property of all objects', async (t) => {
  const former = process.cwd();
  process.chdir(directory);
  t.teardown(() => process.chdir(former));
  const { files, logger, log, text } = setUp({}, 'constructor');
  log('a line');
  await files.flush();
  t.equal(text(), 'a line\n');
  logger.close();
});

t.test('the buffer size is not limited', async (t) => {
  const { files, logger, log, text } = setUp({ flushMinBytes: 9 * 1024 * 1024, flushIntervalMs: 3_600_000 });
  const line = 'x'.repeat(65_535);
  for (let i = 0; i < 200; i++) log(line);
  await files.flush();
  t.equal(text().length, 200 * 65_536);
  t.equal(files.counters.dropped, 0);
  logger.close();
});

t.test('a process with a full disk ends at once', async (t) => {
  const child = run(
    `
    const { files, log } = open('/dev/full');
    for (let i = 0; i < 5000; i++) log('x'.repeat(100));
    files.flushSync(60_000);
    process.exit(3);
  `,
    'ignore',
    'ignore',
  );
  const [code] = await once(child, 'exit');
  t.equal(code, 3);
});

t.test('queued lines are written when the disk has room again', async (t) => {
  // A pipe simulates the disk: it accepts nothing until it is read.
  const path = join(directory, 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const { files, logger, log } = setUp({ flushMinBytes: 10_000 }, path);
  const sent = Array.from({ length: 3000 }, (_, i) => `line ${i} ${'y'.repeat(i % 120)}`);
  for (const line of sent) log(line);
  files.flushSync(0);
  t.ok(files.bufferedBytes > 50_000, 'the pipe is full');
  let received = '';
  const chunk = Buffer.alloc(8192);
  const read = () => {
    try {
      received += chunk.toString('latin1', 0, readSync(reader, chunk));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  };
  const isWhole = () => {
    read();
    return received.endsWith(`${sent.at(-1)}\n`);
  };
  await waitFor(isWhole, { what: 'all lines' });
  t.same(received.split('\n').slice(0, -1), sent);
  t.equal(files.counters.dropped, 0);
  closeSync(reader);
  for (const line of sent) log(line);
  await files.flush();
  t.ok(files.counters.dropped > 0, 'lines are dropped without a reader');
  t.equal(files.bufferedBytes, 0);
  logger.close();
});

t.test('a line torn by a full disk is written again as a whole, and is not mixed with others', async (t) => {
  const path = join(directory, 'torn.log');
  const other = join(directory, 'torn-rotated.log');
  // Separate AccessLogFiles simulate other threads.
  const script = `
    const { execFileSync } = await import('node:child_process');
    const { renameSync } = await import('node:fs');
    const options = { flushMinBytes: 100_000, flushIntervalMs: 3_600_000 };
    const full = async (path, letter) => {
      const { files, log } = open(path, options);
      for (let i = 0; i < 120; i++) log(letter.repeat(i % 2 === 0 ? 100 : 130));
      await files.flush();
      return files;
    };
    const first = await full(${JSON.stringify(path)}, 'a');
    const second = await full(${JSON.stringify(path)}, 'b');
    const rotated = await full(${JSON.stringify(other)}, 'c');
    renameSync(${JSON.stringify(other)}, ${JSON.stringify(`${other}.1`)});
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited']);
    await rotated.reopenAll();
    for (const files of [second, first, rotated]) await files.flush();
    process.exit(0);
  `;
  t.equal(await runOnFullDisk(script), 0);
  const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n').slice(0, -1);
  const isWhole = (line: string) => /^(a+|b+|c+)$/.test(line) && (line.length === 100 || line.length === 130);
  const lines = linesOf(path);
  t.same(
    lines.filter((line) => !isWhole(line)).map((line) => [line[0], lines.indexOf(line)]),
    [['a', 70]],
    'the torn part is a separate line',
  );
  t.equal(lines.filter((line) => line.startsWith('a') && isWhole(line)).length, 120);
  t.equal(lines.filter((line) => line.startsWith('b') && isWhole(line)).length, 120);
  const after = linesOf(other);
  t.ok(after.every(isWhole), 'it is also whole in the file after a rotation');
  t.equal(after.length + linesOf(`${other}.1`).filter(isWhole).length, 120);
});

t.test('retries of a torn line on a full disk write no line twice', async (t) => {
  const path = join(directory, 'tried.log');
  const script = `
    const { execFileSync } = await import('node:child_process');
    const { files, log } = open(${JSON.stringify(path)}, { flushMinBytes: 100_000, flushIntervalMs: 3_600_000 });
    for (let i = 0; i < 120; i++) log(String(i).padStart(100, 'x'));
    for (let i = 0; i < 5; i++) await files.flush();
    if (files.counters.writeFailed < 5) process.exit(1);
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited']);
    await files.flush();
    process.exit(0);
  `;
  t.equal(await runOnFullDisk(script), 0);
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  t.same(lines.splice(81, 1), ['x'.repeat(11)], 'the torn part is a separate line');
  t.same(
    lines,
    Array.from({ length: 120 }, (_, i) => String(i).padStart(100, 'x')),
  );
});

t.test('the recovery of a full disk is logged once, and not as an error', async (t) => {
  const path = join(directory, 'recovered.log');
  const messages = join(directory, 'recovered-process.log');
  const script = `
    const { execFileSync } = await import('node:child_process');
    const { initLogging } = await import(${JSON.stringify(new URL('../log/logger.js', accessLogUrl).href)});
    initLogging({ path: ${JSON.stringify(messages)}, format: '%l %v' });
    const { files, log } = open(${JSON.stringify(path)}, { flushMinBytes: 1000, flushIntervalMs: 3_600_000 });
    for (let i = 0; i < 120; i++) log('x'.repeat(99));
    for (let i = 0; i < 3; i++) await files.flush();
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited']);
    for (let i = 0; i < 2; i++) {
      await files.flush();
      log('one more');
    }
    await files.flush();
    process.exit(0);
  `;
  t.equal(await runOnFullDisk(script), 0);
  const lines = readFileSync(messages, 'utf8').trimEnd().split('\n');
  t.equal(lines.length, 2);
  t.match(lines, [`error cannot write to '${path}': EFBIG`, new RegExp(`^info '${path}' is writable again$`)]);
});

t.test('lines on a full disk before the file is closed do not count as dropped', async (t) => {
  const path = join(directory, 'closed.log');
  const script = `
    const { files, logger, log } = open(${JSON.stringify(path)}, { flushMinBytes: 100_000, flushIntervalMs: 3_600_000 });
    for (let i = 0; i < 120; i++) log('x'.repeat(99));
    await files.flush();
    logger.close();
    while (files.counters.dropped === 0) await new Promise(setImmediate);
    process.exit(files.counters.dropped);
  `;
  // The limit is 8 KiB.
  t.equal(await runOnFullDisk(script), 120 - 81);
  t.equal(readFileSync(path, 'utf8').split('\n').length - 1, 81);
});

t.test('the number of dropped lines is logged when the file accepts lines again', async (t) => {
  const path = join(directory, 'slow-pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const { files, logger, log } = setUp({ flushMinBytes: 1000, maxPendingBytes: 10_000 }, path);
  const fill = () => {
    for (let i = 0; i < 1000; i++) log('x'.repeat(99));
    files.flushSync(0);
  };
  fill();
  const { dropped } = files.counters;
  t.ok(dropped > 0);
  const chunk = Buffer.alloc(65_536);
  const isGone = () => {
    try {
      readSync(reader, chunk);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return files.bufferedBytes === 0;
  };
  await waitFor(isGone, { what: 'all queued lines' });
  fill();
  const messages = readFileSync(processLog, 'utf8').split('\n');
  t.ok(messages.some((line) => line.includes(`slow-pipe' accepts lines again: ${dropped} were dropped`)));
  closeSync(reader);
  logger.close();
});

t.test('threads append whole lines to one file, and none is lost when they end', async (t) => {
  const path = join(directory, 'threads.log');
  const code = `(async () => {
    ${PRELUDE}
    const { workerData } = await import('node:worker_threads');
    const { files, log } = open(workerData.path, { flushMinBytes: 3000 });
    for (let i = 0; i < 3000; i++) {
      log(workerData.letter.repeat(50 + (i % 300)));
      if (i % 100 === 0) await new Promise(setImmediate);
    }
    await files.flush();
    process.exit();
  })()`;
  const workers = ['a', 'b', 'c'].map((letter) => new Worker(code, { eval: true, workerData: { path, letter } }));
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  t.equal(lines.length, 9000);
  t.notOk(lines.find((line) => !/^(a+|b+|c+)$/.test(line) || line.length < 50));
});

t.test('a process that exits right after logging has written its lines in order', async (t) => {
  const path = join(directory, 'exit.log');
  const child = run(`
    const { files, log } = open(${JSON.stringify(path)});
    for (let i = 0; i < 50_000; i++) log('line ' + i);
    await files.flush();
    log('last');
    files.flushSync();
    process.exit(0);
  `);
  await once(child, 'exit');
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  t.same(lines, [...Array.from({ length: 50_000 }, (_, i) => `line ${i}`), 'last']);
});

t.test(
  'a thread that exits right after logging has written its lines, even when the thread pool is busy',
  async (t) => {
    const path = join(directory, 'at-once.log');
    const script = `
    const { isMainThread, Worker } = await import('node:worker_threads');
    if (isMainThread) {
      const { pbkdf2 } = await import('node:crypto');
      const thread = new Worker(new URL(import.meta.url), { env: process.env });
      await new Promise((begun) => thread.once('message', begun));
      let isBusy = true;
      const work = () => pbkdf2('a', 'b', 400_000, 64, 'sha512', () => isBusy && work());
      work();
      thread.postMessage('log');
      await new Promise((ended) => thread.once('exit', ended));
      isBusy = false;
    } else {
      const { parentPort } = await import('node:worker_threads');
      const { files, log } = open(${JSON.stringify(path)});
      parentPort.once('message', () => {
        for (let i = 0; i < 100; i++) log('line ' + i);
        files.flushSync(1000);
        process.exit();
      });
      parentPort.postMessage('begun');
    }
  `;
    const file = join(directory, 'at-once.mjs');
    writeFileSync(file, `${PRELUDE}${script}`);
    const child = spawn(process.execPath, [file], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
    });
    t.same(await once(child, 'exit'), [0, null]);
    t.equal(readFileSync(path, 'utf8').split('\n').length, 101);
  },
);

t.test('standard output works as a pipe, a socket and a file', async (t) => {
  const script = `
    const { files, log } = open('/dev/stdout');
    for (let i = 0; i < 20_000; i++) log('line ' + i);
    await files.flush();
    process.exit(0);
  `;
  const expected = Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join('');
  const shell = runIntoPipe(`${PRELUDE}${script}`);
  t.equal(await outputOf(shell), expected, 'a pipe');
  const child = run(script);
  t.equal(await outputOf(child), expected, 'a socket, as child_process creates it');
  const path = join(directory, 'stdout.txt');
  const fd = openSync(path, 'w');
  const both = run(`process.stdout.write('before\\n'); ${script}`, fd);
  await once(both, 'exit');
  closeSync(fd);
  t.equal(readFileSync(path, 'utf8'), `before\n${expected}`, 'a file that the process also writes to otherwise');
});

t.test('lines to standard output and standard error appear within about a second', async (t) => {
  const child = run(
    `open('/dev/stdout').log('to stdout'); open('/dev/stderr').log('to stderr'); process.stdin.resume();`,
    'pipe',
    'pipe',
  );
  const [[out], [err]] = await Promise.all([once(child.stdout!, 'data'), once(child.stderr!, 'data')]);
  t.equal(String(out), 'to stdout\n');
  t.equal(String(err), 'to stderr\n');
  child.stdin!.end();
  await once(child, 'exit');
});

t.test('lines of threads are not mixed in a pipe', async (t) => {
  const worker = `(async () => {
    ${PRELUDE}
    const { workerData } = await import('node:worker_threads');
    const { files, log } = open('/dev/stdout');
    for (let i = 0; i < 3000; i++) log(workerData.repeat(50 + (i % 100)));
    await files.flush();
  })()`;
  const script = `
    import { Worker } from 'node:worker_threads';
    for (const letter of ['a', 'b']) new Worker(${JSON.stringify(worker)}, { eval: true, workerData: letter });
  `;
  const shell = runIntoPipe(script);
  const lines = (await outputOf(shell)).split('\n').slice(0, -1);
  t.equal(lines.length, 6000);
  t.notOk(lines.find((line) => !/^(a+|b+)$/.test(line)));
});

t.test('a rotation may replace a file by a pipe, and a pipe by a file', async (t) => {
  const path = join(directory, 'becomes-a-pipe');
  const [one, other] = ['a', 'b'].map((letter) => ({ letter, ...setUp({}, path) }));
  const both = [one!, other!];
  const reopen = () => Promise.all(both.map(({ files }) => files.reopenAll()));
  renameSync(path, `${path}.file`);
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  t.teardown(() => closeSync(reader));
  await reopen();
  for (let i = 0; i < 3000; i++) for (const { letter, log } of both) log(letter.repeat(50 + (i % 100)));
  const written = Promise.all(both.map(({ files }) => files.flush())).then(() => true);
  let text = '';
  const chunk = Buffer.alloc(10_000);
  const readSome = () => {
    try {
      text += chunk.toString('latin1', 0, readSync(reader, chunk));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
    return text.split('\n').length > 6000;
  };
  await waitFor(readSome, { what: 'all lines' });
  t.ok(await written);
  t.notOk(
    text.split('\n').find((line) => !/^(a*|b*)$/.test(line)),
    'no lines are mixed',
  );

  renameSync(path, `${path}.pipe`);
  await reopen();
  const { counters } = one!.files;
  const before = counters.writeCompleted;
  for (let i = 0; i < 50; i++) one!.log('x'.repeat(1000));
  await one!.files.flush();
  t.equal(counters.writeCompleted, before + 1, 'one write, not pieces of PIPE_BUF');
  for (const { logger } of both) logger.close();
});

t.test('a pipe reader that does not read delays flushSync() only up to its timeout', async (t) => {
  const script = `
    const { files, log } = open('/dev/stdout');
    for (let i = 0; i < 20_000; i++) log('line ' + i);
    files.flushSync(50);
    process.exit(5);
  `;
  const shell = endsWithTest(
    t,
    spawn(
      'sh',
      [
        '-c',
        '{ "$0" --input-type=module -e "$1"; echo "status $?" >&2; } | { read go <&3; cat >/dev/null; }',
        process.execPath,
        `${PRELUDE}${script}`,
      ],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      },
    ),
  );
  const [status] = await once(shell.stderr!, 'data');
  t.equal(String(status), 'status 5\n', 'the process has exited before anything is read');
  (shell.stdio[3] as NodeJS.WritableStream).end('go\n');
  await once(shell, 'exit');
});

t.test('the path of a socket is refused', async (t) => {
  const path = join(directory, 'socket');
  const server = createServer().listen(path);
  await once(server, 'listening');
  t.throws(() => setUp({}, path), { message: /unable to open file/ });
  server.close();
});

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout!.on('data', (chunk) => {
    text += chunk;
  });
  await once(child, 'close');
  return text;
}
