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

/** Has a process killed that still runs at the end of the test, or when this one ends before that. Returns it. */
export function endsWithTest<Child extends ChildProcess>(t: Teardown, child: Child): Child {
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      children.delete(child);
      resolve();
    });
  });
  children.add(child);
  t.teardown(async () => {
    // One that could not be started has no number.
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
 * A TCP port of the loopback interface that nobody listens on now: prefer port 0 and ask for the number afterwards, and use this
 * where it must be known before, or stay closed. It is below those that the kernel gives to connections, any of which could take
 * it meanwhile.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

/** A TCP port of the loopback interface on which another process listens, until it is let go of: `port`, or any. */
export async function takePort(t: Teardown, port = 0): Promise<{ readonly port: number; letGo(): void }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const letGo = () => void server.close();
  t.teardown(letGo);
  return { port: (server.address() as AddressInfo).port, letGo };
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
