// A route configuration on its way from the primary to the workers: packed once for all of them, in pieces, since a worker that
// unpacks ten thousand virtual hosts in one go serves nobody meanwhile.

import { deserialize, serialize } from 'node:v8';
import type { RouteConfiguration, VirtualHost } from '../config/generated/api.js';

/** Routes that are unpacked, or built, without a turn for others: a millisecond's work, or two. */
export const BATCH = 50;

export interface PackedRoutes {
  /** All but its virtual hosts. */
  readonly config: RouteConfiguration;
  /** The virtual hosts in their order: each piece is an array of them, serialized by V8, in memory that threads share. */
  readonly pieces: readonly Uint8Array[];
  /** How many routes there are; a virtual host counts as one at least. */
  readonly routes: number;
}

/** Packs a configuration once, whoever asks: for workers that run, and for those that begin. */
export function packRoutes(config: RouteConfiguration): PackedRoutes {
  let packed = known.get(config);
  if (packed === undefined) known.set(config, (packed = pack(config)));
  return packed;
}

const known = new WeakMap<RouteConfiguration, PackedRoutes>();

function pack({ virtual_hosts: hosts, ...config }: RouteConfiguration): PackedRoutes {
  const pieces: Uint8Array[] = [];
  let routes = 0;
  let piece: VirtualHost[] = [];
  let size = 0;
  for (const host of hosts ?? []) {
    const count = Math.max(1, host.routes?.length ?? 0);
    if (piece.length > 0 && size + count > BATCH) {
      pieces.push(shared(piece));
      piece = [];
      size = 0;
    }
    piece.push(host);
    size += count;
    routes += count;
  }
  if (piece.length > 0) pieces.push(shared(piece));
  return { config, pieces, routes };
}

/** There are more than can be unpacked and built without a turn for others. */
export function isLong({ routes }: PackedRoutes): boolean {
  return routes > BATCH;
}

/** Yields after each piece. */
export function* unpackRoutes({ config, pieces }: PackedRoutes): Generator<void, RouteConfiguration> {
  const hosts: VirtualHost[] = [];
  for (const piece of pieces) {
    hosts.push(...(deserialize(piece) as VirtualHost[]));
    yield;
  }
  return { ...config, virtual_hosts: hosts };
}

function shared(hosts: readonly VirtualHost[]): Uint8Array {
  const bytes = serialize(hosts);
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
