// The scripts of the examples start, as the documents say, with the program as it is built.

import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../src/common/package/package-root.js';
import { endsWithTest, tempDir, waitFor } from './e2e/harness/index.js';

const SCRIPTS = readdirSync(packagePath('examples')).flatMap((file) => {
  if (file.endsWith('.mjs')) return [join('examples', file)];
  return file.endsWith('.ts') ? [join('dist/examples', file.replace(/\.ts$/, '.js'))] : [];
});

/** Their ports may be taken: they get others, and say so. */
const ANY_PORT = `
import { Socket } from 'node:dgram';
import { Server } from 'node:net';
const { bind } = Socket.prototype;
Socket.prototype.bind = function () { return bind.call(this, 0, () => console.log('it receives')); };
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  const host = typeof port === 'object' ? port.host : rest[0];
  return listen.call(this, 0, host, () => console.log('it listens on ' + this.address().address));
};
`;

t.ok(SCRIPTS.length >= 3);
for (const script of SCRIPTS) {
  t.test(script, async (t) => {
    const directory = tempDir(t);
    const anyPort = join(directory, 'any-port.mjs');
    writeFileSync(anyPort, ANY_PORT);
    const child = spawn(process.execPath, ['--import', anyPort, script], {
      cwd: packagePath('.'),
      env: { PATH: process.env.PATH, TMPDIR: directory },
    });
    endsWithTest(t, child);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
    await waitFor(() => said.includes('it listens') || child.exitCode !== null, { what: 'the script to listen' });
    t.match(said, /it listens on 127\.0\.0\.1\n/, 'for this machine alone');
    t.equal(child.exitCode, null, 'it runs');
  });
}
