// Turns of admin requests on the primary's loop: however many there are, they delay other work by one step of each queue.

import { TurnQueue } from '../../common/time/turn-queue.js';

const REQUEST_TURNS = new TurnQueue();
const PIECE_TURNS = new TurnQueue();

/** Resolves when a request may be handled; urgent requests do not wait. */
export function nextRequestTurn(): Promise<void> {
  return REQUEST_TURNS.next();
}

/** Resolves when the next piece of an answer, or the next step towards it, may be produced. */
export function nextPieceTurn(): Promise<void> {
  return PIECE_TURNS.next();
}

/**
 * Called when a connection was accepted. More connections may be pending, and the loop accepts one per turn. Among very
 * many, a readiness probe's connection then waits only for these, and not for as many steps.
 */
export function postponeForAccepts(): void {
  REQUEST_TURNS.postpone();
  PIECE_TURNS.postpone();
}
