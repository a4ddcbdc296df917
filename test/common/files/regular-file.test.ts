// Files and pipes whose names come from users.

import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readRegularFile } from '../../../src/common/files/regular-file.js';

/** Creates a pipe into which a shell command writes, as `$0`. */
function pipeWith(t: Test, command: string): string {
  const pipe = join(t.testdir(), 'pipe');
  execFileSync('mkfifo', [pipe]);
  const writer = spawn('sh', ['-c', command, pipe], { stdio: 'ignore' });
  t.teardown(() => writer.kill('SIGKILL'));
  return pipe;
}

t.test('a pipe is read to its end, however late its writer opens it and in whatever pieces it writes', async (t) => {
  const pipe = pipeWith(t, 'exec > "$0"; head -c 300000 /dev/zero; echo; echo end');
  const text = readRegularFile(pipe, 1024 * 1024, 60_000).toString();
  t.equal(text.length, 300_000 + 5);
  t.match(text.slice(-6), /^\0\nend\n$/);
});

t.test('reading fails for a pipe without a writer, without an end, or with too much data', async (t) => {
  const read = (command: string, pipeMs: number) => readRegularFile(pipeWith(t, command), 1024 * 1024, pipeMs);
  t.throws(() => read(':', 30), { message: 'no process writes into the pipe: waited 0.03 s' });
  t.throws(() => read('exec > "$0"; echo; exec sleep 600', 500), { message: 'the pipe does not end: waited 0.5 s' });
  t.throws(() => read('exec cat /dev/zero > "$0"', 60_000), { message: 'it is larger than 1 MiB' });
});

t.test('without a timeout, pipes are refused', async (t) => {
  t.throws(() => readRegularFile(pipeWith(t, ':')), { message: 'it is not a regular file' });
  const file = join(t.testdir(), 'file');
  writeFileSync(file, 'text');
  t.equal(readRegularFile(file, 4, 0).toString(), 'text');
});
