// The hosts of the HTTP/2 workloads: two nghttpd. One answers `/small`, the other calls of gRPC, with trailers.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawnPinned } from '../../processes.js';
import { GRPC_MESSAGE, GRPC_PATH, GRPC_STREAM, GRPC_STREAM_PATH } from '../workloads.js';

const MAX_STREAMS = '1000';

const EMPTY = '\0\0\0\0\0';
/** The messages of the answers: spans are accepted, requests allowed, and RateLimitResponse.overall_code is OK. */
const ANSWERS: Readonly<Record<string, string>> = {
  [GRPC_PATH]: GRPC_MESSAGE,
  [GRPC_STREAM_PATH]: GRPC_STREAM,
  '/opentelemetry.proto.collector.trace.v1.TraceService/Export': EMPTY,
  '/envoy.service.auth.v3.Authorization/Check': EMPTY,
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit': '\0\0\0\0\x02\x08\x01',
};

/** Starts both. `ports`: of the plain one and of the one for gRPC, without TLS. */
export function startHttp2Hosts(core: number, parent: string, ports: readonly [number, number]): ChildProcess[] {
  const directory = join(parent, 'http2-host');
  const types = join(parent, 'mime.types');
  for (const [path, message] of Object.entries(ANSWERS)) {
    mkdirSync(join(directory, dirname(path)), { recursive: true });
    writeFileSync(join(directory, path), message);
  }
  writeFileSync(join(directory, 'small'), 'x'.repeat(128));
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
