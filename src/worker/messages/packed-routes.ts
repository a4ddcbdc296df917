// A route configuration in transit from the primary to the workers. It is packed once for all of them, in pieces, because
// unpacking ten thousand virtual hosts at once would block a worker. A piece that equals one of the previous version is the same
// object, so that a worker reuses what it has built from it.

import { isDeepStrictEqual } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { runSync } from '../../common/time/next-turn.js';
import type { RouteConfiguration, VirtualHost } from '../../config/generated/api.js';
import { withEmbeddedFiles } from './embedded-files.js';

/** Routes that are unpacked or built per step: one or two milliseconds' work. */
export const BATCH = 50;

export interface PackedRoutes {
  /** The configuration without its virtual hosts. */
  readonly config: RouteConfiguration;
  /** The virtual hosts in their order. */
  readonly pieces: readonly Piece[];
  /** Number of routes; a virtual host counts as at least one. */
  readonly routes: number;
}

export interface Piece {
  /** Changes with the bytes. */
  readonly id: number;
  /** Name of its first virtual host. */
  readonly first: string;
  /** An array of virtual hosts, serialized by V8, in shared memory. */
  readonly bytes: Uint8Array;
}

export interface UnpackedRoutes {
  readonly config: RouteConfiguration;
  /** What it was unpacked from. */
  readonly packed: PackedRoutes;
  /** By piece id. */
  readonly hosts: ReadonlyMap<number, readonly VirtualHost[]>;
}

/** Packs a configuration once for all running and later workers. `before`: the previous version. */
export function packRoutes(config: RouteConfiguration, before?: PackedRoutes): PackedRoutes {
  return runSync(packRoutesInSteps(config, before));
}

/** packRoutes() in steps; none if the configuration is packed already. */
export function* packRoutesInSteps(config: RouteConfiguration, before?: PackedRoutes): Generator<void, PackedRoutes> {
  let packed = known.get(config);
  if (packed === undefined) known.set(config, (packed = yield* pack(config, before)));
  return packed;
}

/** Pieces packed per step: some milliseconds' work. */
const PIECES_PER_STEP = 16;

const known = new WeakMap<RouteConfiguration, PackedRoutes>();

function* pack(
  { virtual_hosts: hosts = [], ...config }: RouteConfiguration,
  before?: PackedRoutes,
): Generator<void, PackedRoutes> {
  const former = new Map(before?.pieces.map((piece) => [piece.first, piece]));
  const pieces: Piece[] = [];
  let routes = 0;
  let piece: VirtualHost[] = [];
  let size = 0;
  let due = PIECES_PER_STEP;
  const endPiece = (): void => {
    if (piece.length > 0) pieces.push(pieceOf(piece, former));
    piece = [];
    size = 0;
  };
  for (const host of hosts) {
    const count = Math.max(1, host.routes?.length ?? 0);
    if (size + count > BATCH) endPiece();
    piece.push(withEmbeddedFiles(host));
    size += count;
    routes += count;
    if (endsPiece(host.name ?? '')) endPiece();
    if (pieces.length < due) continue;
    due = pieces.length + PIECES_PER_STEP;
    yield;
  }
  endPiece();
  return { config, pieces, routes };
}

/**
 * Returns whether a piece ends after the virtual host of this name. That is true for one name in 32, so that an added or removed host
 * changes only the pieces near it.
 */
function endsPiece(name: string): boolean {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x9e3779b1);
  return hash >>> 27 === 0;
}

let lastId = 0;

function pieceOf(hosts: readonly VirtualHost[], former: ReadonlyMap<string, Piece>): Piece {
  const first = hosts[0]!.name ?? '';
  const bytes = serialize(hosts);
  const same = former.get(first);
  if (same !== undefined && bytes.equals(same.bytes)) return same;
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return { id: ++lastId, first, bytes: shared };
}

/** Returns whether the routes must be unpacked and built in steps. */
export function isLong({ routes }: PackedRoutes): boolean {
  return routes > BATCH;
}

/**
 * Unpacks routes. Yields after each piece that had to be unpacked. Virtual hosts are the same objects as in `before` if nothing
 * has changed that affects them.
 */
export function* unpackRoutes(packed: PackedRoutes, before?: UnpackedRoutes): Generator<void, UnpackedRoutes> {
  const former = isDeepStrictEqual(packed.config, before?.packed.config) ? before?.hosts : undefined;
  const hosts = new Map<number, readonly VirtualHost[]>();
  const all: VirtualHost[] = [];
  for (const { bytes, id } of packed.pieces) {
    const same = former?.get(id);
    const piece = same ?? (deserialize(bytes) as VirtualHost[]);
    hosts.set(id, piece);
    all.push(...piece);
    if (same === undefined) yield;
  }
  return { config: { ...packed.config, virtual_hosts: all }, packed, hosts };
}
