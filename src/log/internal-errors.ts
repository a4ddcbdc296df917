// Internal errors of this thread: exceptions caused by a bug in Baton or in an extension. Each is counted and logged, and fails
// the operation that caused it. None ends the thread by itself.
//
// Code that knows which operation to fail catches exceptions itself and calls internalError(). Code that is called back by
// libraries (Node's HTTP, their timers) runs in a fault domain. The thread's last guard handles exceptions that escape
// from both.

import { AsyncLocalStorage } from 'node:async_hooks';
import { getLogger } from './logger.js';

/** The connection or stream that fails if an exception in its callbacks is not caught elsewhere. */
export interface FaultDomain {
  /** Name for the log, such as `admin connection from 127.0.0.1:1234`. */
  readonly name: string;
  /** Ends the connection or stream. May be called repeatedly. */
  fail(error: unknown): void;
}

/** Counts the internal errors of a thread. */
export interface ErrorCounts {
  /** Called for every internal error, wherever it was caught. */
  internal(): void;
  /** Called for errors that only the last guard caught. */
  uncaught(): void;
}

const logger = getLogger('main');
const domains = new AsyncLocalStorage<FaultDomain | undefined>();

let counts: ErrorCounts = { internal() {}, uncaught() {} };

/** Sets the counters of this thread. */
export function countInternalErrors(by: ErrorCounts): void {
  counts = by;
}

/** Counts and logs an internal error; `what` describes the failed operation. Never throws. */
export function internalError(what: string, error: unknown): void {
  counts.internal();
  logger.critical({ err: error }, what);
}

/** Calls `act` for each item. An exception for one item is reported as an internal error; the other items are still processed. */
export function forEachGuarded<T>(items: Iterable<T>, what: string, act: (item: T) => void): void {
  for (const item of items) {
    try {
      act(item);
    } catch (error) {
      internalError(what, error);
    }
  }
}

/**
 * Calls `act` in a domain. The domain fails if `act` throws, and if callbacks that `act` leaves behind throw: events of what it
 * opens, timers, promises.
 */
export function inDomain(domain: FaultDomain, act: () => void): void {
  try {
    domains.run(domain, act);
  } catch (error) {
    failDomain(domain, error);
  }
}

/** Calls `act` outside of any domain, for work that outlives the current connection or stream. */
export function outsideDomains<T>(act: () => T): T {
  return domains.run(undefined, act);
}

/** Counts and logs the exception, and fails the domain. Never throws. */
export function failDomain(domain: FaultDomain, error: unknown): void {
  internalError(`internal error: the ${domain.name} is ended`, error);
  try {
    domain.fail(error);
  } catch (another) {
    internalError(`the ${domain.name} cannot be ended`, another);
  }
}

/**
 * Installs the last guard of the thread: uncaught exceptions are counted and logged, and fail their domain. `mustEnd` is called
 * for exceptions outside of any domain. If it returns true, the thread must not continue and its owner ends it; then nothing is
 * logged here. `isForeign` is called first: it returns true if the exception comes from a user's code and has been reported.
 */
export function guardThread(
  mustEnd: (error: unknown) => boolean,
  isForeign: (error: unknown) => boolean = () => false,
): void {
  process.on('uncaughtException', (error) => {
    if (isForeign(error)) return;
    counts.uncaught();
    const domain = domains.getStore();
    if (domain !== undefined) failDomain(domain, error);
    else if (!mustEnd(error)) internalError('internal error: uncaught exception', error);
  });
  process.on('unhandledRejection', (reason) => {
    if (isForeign(reason)) return;
    counts.uncaught();
    const domain = domains.getStore();
    if (domain !== undefined) failDomain(domain, reason);
    else internalError('internal error: unhandled promise rejection', reason);
  });
}
