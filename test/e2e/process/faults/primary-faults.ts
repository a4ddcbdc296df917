// Loaded into Baton before its own code (--import): injects faults into its primary thread on command, as a defect would cause
// them.
//
// A file that appears in the directory BATON_TEST_FAULTS, named by a place below, makes the next call there throw. Places whose
// names begin with "stray" throw at once, where no handler catches it.

import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { AdminTraffic } from '../../../../src/admin/http/connections/admin-traffic.js';
import { PrimaryCluster } from '../../../../src/server/clusters/version/primary-cluster.js';
import { Snapshots } from '../../../../src/server/workers/snapshots.js';
import { StatsStore } from '../../../../src/stats/store.js';
import { DnsResolver } from '../../../../src/upstream/dns/resolver.js';
import { HostHealth } from '../../../../src/upstream/health-checks/host-health.js';
import { TypeChannel } from '../../../../src/xds/grpc/type-channel.js';
import { CachedReader } from '../../../../src/xds/reading/cached-reader.js';

const POLL_MS = 10;

export const PLACES = {
  'stray timer': () => void setTimeout(fail, 0),
  'stray interval': () => {
    const timer = setInterval(() => {
      clearInterval(timer);
      fail();
    }, 1);
  },
  'stray immediate': () => void setImmediate(fail),
  'stray microtask': () => queueMicrotask(fail),
  'stray promise': () => void Promise.reject(new Error('injected exception')),
  'stray socket': () => void failInSocket(),
  'stray text': () => {
    setImmediate(() => {
      throw 'injected exception';
    });
  },
  'stray object': () => {
    setImmediate(() => {
      throw Object.create(null);
    });
  },
  'flush of stats': () => failOnce(StatsStore, 'flushInSteps'),
  'message of a worker': () => failOnce(Snapshots, 'applied'),
  'snapshot of a cluster': () => failOnce(PrimaryCluster, 'snapshot'),
  'answer of DNS': () => failOnce(DnsResolver, 'resolve'),
  'outcome of a health check': () => failOnce(HostHealth, 'take'),
  'file of resources': () => failOnce(CachedReader, 'readFile'),
  'request to a management server': () => failOnce(TypeChannel, 'request'),
  'subscription at a management server': () => failOnce(TypeChannel, 'flush'),
  'request to the admin interface': () => failOnce(AdminTraffic, 'requestBegan'),
  'end of a request to the admin interface': () => failOnce(AdminTraffic, 'requestEnded'),
  'connection to the admin interface': () => failOnce(AdminTraffic, 'connected'),
  'protocol of an admin connection': () => failOnce(AdminTraffic, 'protocolDetected'),
  'end of an admin connection': () => failOnce(AdminTraffic, 'closed'),
} as const satisfies Record<string, () => void>;

if (isMainThread && process.env.BATON_TEST_FAULTS !== undefined) setInterval(executeCommands, POLL_MS).unref();

function executeCommands(): void {
  for (const [name, act] of Object.entries(PLACES)) if (isRequested(name)) act();
}

function isRequested(name: string): boolean {
  const path = join(process.env.BATON_TEST_FAULTS!, name);
  try {
    renameSync(path, `${path}.taken`);
    return true;
  } catch {
    return false;
  }
}

function fail(): never {
  throw new Error('injected exception');
}

/** Makes the next call of a method, or of a getter, throw. */
function failOnce<T extends abstract new (...args: never[]) => object>(
  of: T,
  name: keyof InstanceType<T> & string,
): void {
  const { prototype } = of;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name)!;
  const broken = function (this: unknown) {
    Object.defineProperty(prototype, name, descriptor);
    fail();
  };
  const changed = descriptor.get === undefined ? { value: broken } : { get: broken };
  Object.defineProperty(prototype, name, { ...descriptor, ...changed });
}

/** Throws in an event of an unrelated socket. */
async function failInSocket(): Promise<void> {
  const server = createServer((socket) => void socket.end('x')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
  socket.on('close', () => server.close());
  socket.on('data', fail);
}
