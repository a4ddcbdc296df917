// The turns that admin requests take on the primary's loop, so that very many of them at once delay other work by a step of each queue only.

import { TurnQueue } from '../../common/time/turn-queue.js';

/** For a request that is about to be handled; urgent ones take no turn. */
export const REQUEST_TURNS = new TurnQueue();

/** For the next piece of an answer, or the next step towards it. */
export const PIECE_TURNS = new TurnQueue();
