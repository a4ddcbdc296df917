// Internal errors of this thread: exceptions that are a mistake in Baton or in an extension. Each is counted and logged, and fails
// what has caused it; none ends the thread by itself.
//
// Code that knows what has to fail catches for itself and calls internalError(). Around what others call back (Node's HTTP, grpc-js,
// timers that they set) it opens a fault domain instead. What even a domain does not see is left to the thread's last guard.

import { AsyncLocalStorage } from 'node:async_hooks';
import { getLogger } from './logger.js';

/** What fails when an exception that comes of it is caught by nobody else: a connection, a stream. */
export interface FaultDomain {
  /** As the log names it: `admin connection from 127.0.0.1:1234`. */
  readonly name: string;
  /** Ends it. May be called again. */
  fail(error: unknown): void;
}

/** How a thread counts its internal errors. */
export interface ErrorCounts {
  /** An internal error, wherever it was caught. */
  internal(): void;
  /** Only the last guard has caught it. */
  uncaught(): void;
}

const logger = getLogger('main');
const domains = new AsyncLocalStorage<FaultDomain | undefined>();

let counts: ErrorCounts = { internal() {}, uncaught() {} };

/** Sets how this thread counts its internal errors. */
export function countInternalErrors(by: ErrorCounts): void {
  counts = by;
}

/** Counts and logs an internal error; `what` says what has failed. Never throws. */
export function internalError(what: string, error: unknown): void {
  counts.internal();
  logger.critical({ err: error }, what);
}

/** Calls `act` for each item. What it throws for one is an internal error, and the others are not affected. */
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
 * Calls `act` in a domain, which fails with what that throws, and with what is thrown in callbacks that it leaves behind: events of
 * what it opens, timers, promises.
 */
export function inDomain(domain: FaultDomain, act: () => void): void {
  try {
    domains.run(domain, act);
  } catch (error) {
    failDomain(domain, error);
  }
}

/** Calls `act` in no domain: what it begins outlives the connection or stream that it is called for. */
export function outsideDomains<T>(act: () => T): T {
  return domains.run(undefined, act);
}

/** Counts and logs what was thrown, and fails the domain. Never throws. */
export function failDomain(domain: FaultDomain, error: unknown): void {
  internalError(`internal error: the ${domain.name} is ended`, error);
  try {
    domain.fail(error);
  } catch (another) {
    internalError(`the ${domain.name} cannot be ended`, another);
  }
}

/**
 * Guards the thread from here on: what nobody else has caught is counted and logged, and fails the domain that it comes of.
 * `mustEnd` is asked about an exception that comes of none. When it returns true the thread is not to go on, and its owner ends it:
 * then nothing is logged here.
 */
export function guardThread(mustEnd: (error: unknown) => boolean): void {
  process.on('uncaughtException', (error) => {
    counts.uncaught();
    const domain = domains.getStore();
    if (domain !== undefined) failDomain(domain, error);
    else if (!mustEnd(error)) internalError('internal error: nobody has caught an exception', error);
  });
  process.on('unhandledRejection', (reason) => {
    counts.uncaught();
    const domain = domains.getStore();
    if (domain !== undefined) failDomain(domain, reason);
    else internalError('a promise was rejected and nobody waits for it', reason);
  });
}
