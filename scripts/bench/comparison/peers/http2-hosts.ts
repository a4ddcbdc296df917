// The hosts of the HTTP/2 workloads: two nghttpd. One answers `/small`, the other calls of gRPC, with trailers.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawnPinned } from '../../processes.js';
import { CHECK_PATH, EXPORT_PATH, GRPC_MESSAGE, GRPC_PATH } from '../workloads.js';

const MAX_STREAMS = '1000';

/** Starts both. `ports`: of the plain one and of the one for gRPC, without TLS. */
export function startHttp2Hosts(core: number, parent: string, ports: readonly [number, number]): ChildProcess[] {
  const directory = join(parent, 'http2-host');
  const types = join(parent, 'mime.types');
  for (const path of [GRPC_PATH, EXPORT_PATH, CHECK_PATH])
    mkdirSync(join(directory, dirname(path)), { recursive: true });
  writeFileSync(join(directory, 'small'), 'x'.repeat(128));
  writeFileSync(join(directory, GRPC_PATH), GRPC_MESSAGE);
  // An empty message.
  for (const path of [EXPORT_PATH, CHECK_PATH]) writeFileSync(join(directory, path), '\0'.repeat(5));
  writeFileSync(types, 'application/grpc grpc\n');
  const start = (port: number, ...more: string[]): ChildProcess => {
    const args = [
      '--no-tls',
      '-a',
      '127.0.0.1',
      '-d',
      directory,
      '-m',
      MAX_STREAMS,
      '--mime-types-file',
      types,
      ...more,
    ];
    return spawnPinned(core, 'nghttpd', [...args, String(port)]);
  };
  return [start(ports[0]), start(ports[1], '--trailer', 'grpc-status: 0')];
}
