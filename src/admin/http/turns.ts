// The turns that admin requests take on the primary's loop, so that very many of them at once delay other work by a step of each queue only.

import { TurnQueue } from '../../common/time/turn-queue.js';

const REQUEST_TURNS = new TurnQueue();
const PIECE_TURNS = new TurnQueue();

/** Resolves when a request may be handled; urgent ones take no turn. */
export function nextRequestTurn(): Promise<void> {
  return REQUEST_TURNS.next();
}

/** Resolves when the next piece of an answer, or the next step towards it, may be made. */
export function nextPieceTurn(): Promise<void> {
  return PIECE_TURNS.next();
}

/**
 * Called when a connection was accepted: others may wait behind it, and the loop accepts one a turn. Among very many, that of a
 * readiness probe waits for them, and not for as many steps.
 */
export function acceptFirst(): void {
  REQUEST_TURNS.postpone();
  PIECE_TURNS.postpone();
}
