// Resources of the machine that a test uses and releases: directories, port numbers and processes.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The part of a tap test that the harness uses. */
export interface Teardown {
  teardown(action: () => unknown): unknown;
}

/** Returns a new directory that is removed when the test ends. */
export function tempDir(t: Teardown): string {
  const directory = mkdtempSync(join(tmpdir(), 'baton-test-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Kills a process that still runs when the test ends, or when the test process exits before that. Returns the process. */
export function endsWithTest<Child extends ChildProcess>(t: Teardown, child: Child): Child {
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      children.delete(child);
      resolve();
    });
  });
  children.add(child);
  t.teardown(async () => {
    // A process that could not be started has no pid.
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await gone;
  });
  return child;
}

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/**
 * Returns an unused TCP port of the loopback interface. Prefer port 0 and read the port afterwards; use this where the port
 * must be known before, or must stay closed. It lies below the ephemeral ports, which the kernel could assign to any
 * connection.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

/** Listens on a TCP port of the loopback interface in another process until it is released: `port`, or any. */
export async function takePort(t: Teardown, port = 0): Promise<{ readonly port: number; release(): void }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const release = () => void server.close();
  t.teardown(release);
  return { port: (server.address() as AddressInfo).port, release };
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isBound = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (isBound) await new Promise((resolve) => server.close(resolve));
  return isBound;
}
