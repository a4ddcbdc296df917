// Encodes and decodes the messages by which connections move from a worker of the parent process to one of the child process.
//
// A message is a kind, the number of the connection, and a body. Both processes have the same hot restart version, which
// guarantees that they understand each other.

import type { HandedOverConnection, HandOverFacts } from '../../listener/hand-over.js';

export const enum HandOverKind {
  /** Parent: bytes of the Offer of that number, which follows. */
  Piece = 1,
  /** Parent, with the descriptors: the complete connection. */
  Offer = 2,
  /** Child: ready to continue the connection, and waiting. */
  Accept = 3,
  /** Child: cannot continue it, and has closed its copies. */
  Refuse = 4,
  /** Parent: the connection belongs to the child. */
  Commit = 5,
  /** Parent: the connection stays with the parent. */
  Abort = 6,
  /** Child: continues the connection now. */
  Begun = 7,
}

export interface HandOverMessage {
  readonly kind: HandOverKind;
  readonly key: number;
  readonly body: Uint8Array;
}

/** An invalid message, or one that is not permitted in this state. */
export class HandOverError extends Error {
  readonly code = 'ERR_HAND_OVER';
}

const HEAD = 5;
/** Per message; the shim permits 64 KiB. */
const MAX_BODY_BYTES = 60 * 1024;

export function encodeMessage(kind: HandOverKind, key: number, body: Uint8Array = NOTHING): Uint8Array {
  const bytes = new Uint8Array(HEAD + body.length);
  bytes[0] = kind;
  new DataView(bytes.buffer).setUint32(1, key);
  bytes.set(body, HEAD);
  return bytes;
}

/** Throws HandOverError. */
export function decodeMessage(bytes: Uint8Array): HandOverMessage {
  const kind = bytes[0] ?? 0;
  if (bytes.length < HEAD || kind < HandOverKind.Piece || kind > HandOverKind.Begun) {
    throw new HandOverError('a message of an unknown kind');
  }
  const key = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  return { kind, key, body: bytes.subarray(HEAD) };
}

/**
 * Returns the messages of an offer in order. The last one has the descriptors, so that the child has none before the offer is
 * complete.
 */
export function encodeConnection(key: number, { facts, input, sockets }: HandedOverConnection): Uint8Array[] {
  const ends = sockets.map(({ pending, ended, finAsked }) => ({ pending: pending.length, ended, finAsked }));
  const json = Buffer.from(JSON.stringify({ facts, sockets: ends, input: input.length }));
  if (json.length > MAX_BODY_BYTES)
    throw new HandOverError('the description of the connection does not fit in a message');
  const bytes = Buffer.concat([...sockets.map(({ pending }) => pending), input]);
  const messages: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += MAX_BODY_BYTES) {
    messages.push(encodeMessage(HandOverKind.Piece, key, bytes.subarray(at, at + MAX_BODY_BYTES)));
  }
  messages.push(encodeMessage(HandOverKind.Offer, key, json));
  return messages;
}

/** Throws HandOverError. */
export function decodeConnection(json: Uint8Array, bytes: Uint8Array, fds: readonly number[]): HandedOverConnection {
  const { facts, input, sockets } = parseOffer(json);
  const total = sockets.reduce((sum, { pending }) => sum + pending, input);
  if (sockets.length !== fds.length || total !== bytes.length) throw new HandOverError('an offer with parts missing');
  let at = 0;
  const taken = sockets.map(({ pending, ended, finAsked }, index) => {
    at += pending;
    return { fd: fds[index]!, pending: bytes.slice(at - pending, at), ended, finAsked };
  });
  return { facts, sockets: taken, input: bytes.slice(at) };
}

interface Offer {
  readonly facts: HandOverFacts;
  /** Bytes of each part, in order. */
  readonly sockets: readonly { readonly pending: number; readonly ended: boolean; readonly finAsked: boolean }[];
  readonly input: number;
}

function parseOffer(json: Uint8Array): Offer {
  let parsed: Partial<Offer> | null;
  try {
    parsed = JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  } catch {
    throw new HandOverError('an unreadable offer');
  }
  const { facts, input, sockets } = parsed ?? {};
  if (!facts?.progress || typeof facts.progress !== 'object' || !isLength(input) || !Array.isArray(sockets)) {
    throw new HandOverError('an offer of an unknown form');
  }
  const isSocket = (socket: Offer['sockets'][number] | null) =>
    isLength(socket?.pending) && typeof socket.ended === 'boolean' && typeof socket.finAsked === 'boolean';
  if (!sockets.every(isSocket)) throw new HandOverError('an offer of sockets of an unknown form');
  return { facts, input, sockets };
}

function isLength(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const NOTHING = new Uint8Array(0);
