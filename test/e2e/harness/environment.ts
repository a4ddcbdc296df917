// What a test borrows from the machine and gives back: directories, port numbers and processes.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The part of a tap test that the harness uses. */
export interface Teardown {
  teardown(action: () => unknown): unknown;
}

/** A new directory that goes with the test. */
export function tempDir(t: Teardown): string {
  const directory = mkdtempSync(join(tmpdir(), 'baton-test-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Has a process killed, should this one end before it. */
export function endWithThisProcess(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/**
 * A TCP port of the loopback interface that nobody listens on now. Another process may take it before the test does:
 * prefer port 0 and ask for the number afterwards, and use this for a port that must stay closed.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
