// A route configuration on its way from the primary to the workers: packed once for all of them, in pieces, since a worker that
// unpacks ten thousand virtual hosts in one go serves nobody meanwhile. What the version before had too are the same pieces, of
// which a worker keeps what it has made.

import { isDeepStrictEqual } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { runSync } from '../../common/time/next-turn.js';
import type { RouteConfiguration, VirtualHost } from '../../config/generated/api.js';
import { withEmbeddedFiles } from './embedded-files.js';

/** Routes that are unpacked, or built, without a turn for others: a millisecond's work, or two. */
export const BATCH = 50;

export interface PackedRoutes {
  /** All but its virtual hosts. */
  readonly config: RouteConfiguration;
  /** The virtual hosts in their order. */
  readonly pieces: readonly Piece[];
  /** How many routes there are; a virtual host counts as one at least. */
  readonly routes: number;
}

export interface Piece {
  /** Other bytes have another one. */
  readonly id: number;
  /** Name of its first virtual host. */
  readonly first: string;
  /** An array of virtual hosts, serialized by V8, in memory that threads share. */
  readonly bytes: Uint8Array;
}

export interface UnpackedRoutes {
  readonly config: RouteConfiguration;
  /** What it was unpacked from. */
  readonly packed: PackedRoutes;
  /** By the ids of their pieces. */
  readonly hosts: ReadonlyMap<number, readonly VirtualHost[]>;
}

/** Packs a configuration once, whoever asks: for workers that run, and for those that begin. `before`: the version before. */
export function packRoutes(config: RouteConfiguration, before?: PackedRoutes): PackedRoutes {
  return runSync(packRoutesInSteps(config, before));
}

/** The same some pieces at a time: what is packed already takes no step. */
export function* packRoutesInSteps(config: RouteConfiguration, before?: PackedRoutes): Generator<void, PackedRoutes> {
  let packed = known.get(config);
  if (packed === undefined) known.set(config, (packed = yield* pack(config, before)));
  return packed;
}

/** Pieces that are packed in one step: some milliseconds' work. */
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
    if (isLandmark(host.name ?? '')) endPiece();
    if (pieces.length < due) continue;
    due = pieces.length + PIECES_PER_STEP;
    yield;
  }
  endPiece();
  return { config, pieces, routes };
}

/**
 * Whether a piece ends behind the virtual host of this name, as one in 32 do: so those behind one that has come or gone are soon in
 * the pieces that they were in.
 */
function isLandmark(name: string): boolean {
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

/** There are more than can be unpacked and built without a turn for others. */
export function isLong({ routes }: PackedRoutes): boolean {
  return routes > BATCH;
}

/**
 * Yields after each piece that has to be unpacked. Virtual hosts are the same objects as in `before` where nothing has changed that
 * has a say in what becomes of them.
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
