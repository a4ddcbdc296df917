// The wrapper's decisions: when an epoch starts, when it counts as live, what the end of a child means.

import type { SignalName } from '../common/process/signals.js';
import { OccasionalLog } from '../log/occasional-log.js';
import { BackOff } from './back-off.js';
import { type Departure, Epoch, type EpochEvents } from './epoch.js';
import { logger } from './log.js';
import type { Options } from './options.js';
import { RunningEpochs } from './running-epochs.js';
import type { ServiceManager } from './service-manager.js';

/** Characters of what a stranger says. */
const MAX_SAID_LOGGED = 200;
/** Messages of strangers at a time. */
const MAX_STRANGERS_LOGGED = 5;

/** The longest wait when nobody serves: the next one likely becomes live as the last one did. It doubles with each that does not. */
const LONGEST_OUTAGE_MS = 1000;
/** How long a child may take to make room for one that needs its socket names. */
const MAKE_ROOM_MS = 5000;

export interface Surroundings {
  /** Of the children, but for RESTART_EPOCH. */
  readonly env: NodeJS.ProcessEnv;
  readonly manager: ServiceManager;
  /** A child is about to start, which is to be heard. */
  ensureHearing(): void;
  /** Ends this process. */
  exit(status: number): void;
}

export class Restarter implements EpochEvents {
  readonly #options: Options;
  readonly #surroundings: Surroundings;
  readonly #backOff = new BackOff();
  readonly #strangers = new OccasionalLog((text) => logger.warning(text), MAX_STRANGERS_LOGGED);
  readonly #running = new RunningEpochs();
  /** The newest that is live; or the one that is about to be again, because the newest is dead. */
  #current: Epoch | undefined;
  /** Not live yet, or killed because it never was, and not gone. */
  #starting: Epoch | undefined;
  /** SIGHUP has come, and its epoch has not started yet. */
  #isNextWanted = false;
  /** The newest live one has died, and nothing has taken its place yet. */
  #isBereft = false;
  /** Epochs that have died without being live since one died that had been. */
  #failures = 0;
  #startAgain: NodeJS.Timeout | undefined;
  /** One is due, and starts when the one that has its socket names has left. */
  #waitsForRoom = false;
  /** A child has said something on the notify socket: so the program says when it is live. */
  #speaks = false;
  /** The last attempt to start an epoch, when it has failed. */
  #failure: string | undefined;
  #isEnding = false;
  /** Of this process, when it was told to end and the last child has left. */
  #exitStatus = 0;

  constructor(options: Options, surroundings: Surroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
  }

  start(): void {
    this.#isNextWanted = true;
    this.#proceed();
  }

  receive(signal: SignalName): void {
    logger.info(`received ${signal}`);
    if (signal === 'SIGHUP') this.#reload();
    else if (signal === 'SIGUSR1') for (const epoch of this.#running) epoch.reopenLogs();
    else this.#end();
  }

  /** Whether `pid` is a child that this wrapper has started and waits for. */
  owns(pid: number): boolean {
    return this.#running.find(pid) !== undefined;
  }

  /** Takes what a process says on the notify socket. */
  hear(pid: number, words: ReadonlyMap<string, string>): void {
    const epoch = this.#running.find(pid);
    if (epoch === undefined) {
      const said = [...words.keys()]
        .join(', ')
        .replaceAll(/[^ -~]/g, '?')
        .slice(0, MAX_SAID_LOGGED);
      this.#strangers.log(`process ${pid}, which is no epoch's, said ${said}: it is not believed`);
      return;
    }
    this.#speaks = true;
    if (words.get('WATCHDOG') === '1') epoch.lastSignOfLifeMs = performance.now();
    const state = words.get('X_BATON_EPOCH');
    epoch.hasFreedNames ||= state === 'leaving';
    epoch.isStopping ||= words.get('STOPPING') === '1' || state === 'leaving';
    epoch.accepts ||= state === 'serving';
    if (state === 'replaced') this.#replaced(epoch);
    if (words.get('READY') === '1' && epoch.phase === 'starting') this.#becomesLive(epoch, 'is live');
    else if (words.get('READY') === '1' && (epoch.phase === 'draining' || epoch.isReplaced)) this.#servesAgain(epoch);
    this.#report();
  }

  /** Whether the newest live child lives: if it has ever given signs of life, the last one is not older than `maxAgeMs`. */
  isHealthy(maxAgeMs: number): boolean {
    if (this.#current?.phase !== 'live') return false;
    const last = this.#current.lastSignOfLifeMs;
    return last === undefined || performance.now() - last <= maxAgeMs;
  }

  onLeft(epoch: Epoch, { isClean, how }: Departure): void {
    this.#running.delete(epoch);
    logger[isClean ? 'info' : 'warning'](`epoch ${epoch.number} (pid ${epoch.pid ?? 'none'}) left: ${how}`);
    const wasStarting = epoch === this.#starting;
    if (wasStarting) this.#starting = undefined;
    const wasCurrent = epoch === this.#current;
    if (wasCurrent) this.#current = undefined;
    if (!this.#isEnding) {
      if (!isClean && epoch.phase !== 'leaving' && this.#isUnforgiving()) return this.#killEverything();
      if (wasCurrent && epoch.phase !== 'leaving') this.#isLost(epoch);
      if (wasStarting && epoch.hasServed) this.#diedAsItTookOver(epoch);
      else if (wasStarting) this.#hasFailed(epoch);
    }
    this.#proceed();
  }

  /** As hot-restarter.py (FACTS §8.5): on request, and for programs of which it is not known when they are live. */
  #isUnforgiving(): boolean {
    return this.#options.isStrict || !this.#speaks;
  }

  #reload(): void {
    if (this.#isEnding) return;
    if (this.#starting !== undefined)
      logger.info(`epoch ${this.#starting.number} is starting: the next one waits for it`);
    this.#isNextWanted = true;
    this.#proceed();
  }

  /** Does what is due, whenever something has changed. */
  #proceed(): void {
    if (this.#isEnding) {
      if (this.#running.isEmpty) return this.#exit(this.#exitStatus);
    } else if (this.#starting === undefined) {
      if (this.#isNextWanted || this.#waitsForRoom) this.#startNext();
      else if (this.#isBereft) this.#startAgainLater();
      // The first one of all. What was live is started again for ever: this wrapper ends with 0 only when it is told to.
      else if (this.#running.isEmpty) return this.#exit(1);
    }
    this.#report();
  }

  #startNext(): void {
    clearTimeout(this.#startAgain);
    this.#startAgain = undefined;
    if (this.#isNextWanted) this.#surroundings.manager.reloading();
    // Without one that is live there is no parent to take over from. The number of an epoch that failed is used again: a
    // child looks for its parent one below.
    const number = this.#current === undefined ? 0 : this.#current.number + 1;
    const inTheWay = this.#running.inTheWayOf(number);
    // Goes on when that one has left.
    this.#waitsForRoom = inTheWay !== undefined;
    if (inTheWay !== undefined) return this.#makeRoom(inTheWay, number);
    this.#isNextWanted = false;
    this.#surroundings.ensureHearing();
    const { program, args, liveTimeoutMs, silenceMs } = this.#options;
    const epoch = new Epoch(number, [program, ...args], this.#surroundings.env, this);
    this.#running.add(epoch);
    this.#starting = epoch;
    logger.info(`epoch ${number} started (pid ${epoch.pid ?? 'none'}): ${[program, ...args].join(' ')}`);
    if (!this.#speaks) epoch.timers.push(setTimeout(() => this.#isSilent(epoch), silenceMs));
    if (liveTimeoutMs !== Number.POSITIVE_INFINITY) {
      epoch.timers.push(setTimeout(() => this.#isLate(epoch), liveTimeoutMs));
    }
  }

  #makeRoom(old: Epoch, number: number): void {
    if (old.phase === 'leaving') return;
    logger.warning(`${old.describe()} still has the socket names that epoch ${number} needs: it is told to leave`);
    old.terminate();
    old.timers.push(setTimeout(() => old.kill(), MAKE_ROOM_MS));
  }

  #startAgainLater(): void {
    if (this.#startAgain !== undefined) return;
    const backOffMs = this.#backOff.next();
    const isOutage = this.#current === undefined;
    const longestMs = LONGEST_OUTAGE_MS * 2 ** this.#failures;
    const delayMs = isOutage ? Math.min(backOffMs, longestMs) : backOffMs;
    logger.info(`starts again in ${delayMs / 1000} s`);
    this.#startAgain = setTimeout(() => this.#startNext(), delayMs);
  }

  /** A program that has never said anything may not know how to. */
  #isSilent(epoch: Epoch): void {
    if (!this.#speaks) this.#becomesLive(epoch, 'says nothing on NOTIFY_SOCKET, and counts as live');
  }

  #isLate(epoch: Epoch): void {
    if (!this.#speaks) return this.#isSilent(epoch);
    logger.error(`epoch ${epoch.number} is not live after ${this.#options.liveTimeoutMs / 1000} s: it is killed`);
    if (this.#options.isStrict) return this.#killEverything();
    // Not by SIGTERM: with that it would tell its parent, which is the one that serves, to end as well (FACTS §8.3).
    epoch.kill();
    this.#report();
  }

  #becomesLive(epoch: Epoch, how: string): void {
    logger.info(`epoch ${epoch.number} ${how}`);
    // One that is not its parent has taken up serving again since the parent died, and nobody else tells it to end.
    if (this.#current?.number === epoch.number - 1) this.#current.drain();
    else this.#current?.terminate();
    epoch.becomeLive(performance.now());
    this.#current = epoch;
    this.#starting = undefined;
    this.#isBereft = false;
    this.#failure = undefined;
    this.#surroundings.manager.ready(this.#describe());
    this.#proceed();
  }

  /** The epoch says that the next one serves: it says so before that one does, which may die in between. */
  #replaced(epoch: Epoch): void {
    epoch.isReplaced = true;
    if (epoch === this.#current && this.#starting !== undefined) this.#starting.hasServed = true;
    // It is dead already, and has been taken for one that never became live.
    if (epoch === this.#current && this.#starting === undefined) this.#bereave(0);
  }

  /** An epoch that was replaced says that it is live: it has seen the end of the one that replaced it. */
  #servesAgain(epoch: Epoch): void {
    const dead = this.#current;
    // A third one has become live meanwhile, or is about to be and accepts already.
    const isAnother = dead !== undefined && dead !== epoch && dead.number !== epoch.number + 1;
    const starting = this.#starting;
    const startsBeside = starting !== undefined && starting.number !== epoch.number + 1;
    if (isAnother || (startsBeside && starting.accepts)) return epoch.terminate();
    logger.warning(`epoch ${epoch.number} serves again`);
    epoch.serveAgain();
    this.#current = epoch;
    if (dead !== undefined && dead !== epoch) {
      this.#bereave(this.#liveMs(dead));
      // Its end has not been seen here yet.
      dead.kill();
    }
    // The parent of one that starts beside it is dead: the one to start takes over from the epoch that serves.
    if (startsBeside) starting.kill();
    this.#surroundings.manager.ready(this.#describe());
    this.#proceed();
  }

  /** The serving epoch has ended, and not because it was told to: in order or not, the next one has to come. */
  #isLost(epoch: Epoch): void {
    logger.error(`epoch ${epoch.number} was the one that served`);
    this.#bereave(this.#liveMs(epoch));
    // A program that says nothing does not know that it would have to serve again.
    if (this.#speaks) this.#current = this.#running.heirOf(epoch);
  }

  /** Its parent, which has said that it served, serves again, or will. */
  #diedAsItTookOver(epoch: Epoch): void {
    logger.error(`epoch ${epoch.number} died as it took over`);
    if (this.#current?.isReplaced) this.#current.drain();
    this.#bereave(0);
  }

  #bereave(liveMs: number): void {
    this.#isBereft = true;
    this.#failures = liveMs > 0 ? 0 : this.#failures + 1;
    this.#backOff.died(liveMs);
  }

  #liveMs({ liveSinceMs }: Epoch): number {
    return liveSinceMs === undefined ? 0 : performance.now() - liveSinceMs;
  }

  #hasFailed(epoch: Epoch): void {
    const heir = this.#current?.phase === 'draining' ? this.#current : undefined;
    const serving = heir === undefined ? this.#current : undefined;
    const rest = serving === undefined ? 'none serves' : `epoch ${serving.number} serves on`;
    logger.error(`epoch ${epoch.number} never became live: ${rest}`);
    if (heir !== undefined) {
      logger.error(`epoch ${heir.number} does not serve again: it is killed`);
      heir.kill();
      this.#current = undefined;
    }
    this.#failure = `epoch ${epoch.number} failed to start`;
    this.#failures++;
    this.#surroundings.manager.reloaded(this.#describe());
  }

  /** SIGTERM or SIGINT: all are told to leave, and killed when they do not. */
  #end(): void {
    const isFirst = !this.#isEnding;
    this.#isEnding = true;
    for (const epoch of this.#running) epoch.terminate();
    if (!isFirst) return;
    clearTimeout(this.#startAgain);
    this.#exitStatus = 0;
    this.#surroundings.manager.stopping(this.#describe());
    const { endTimeoutMs } = this.#options;
    setTimeout(() => {
      logger.error(`not all have left within ${endTimeoutMs / 1000} s: the rest is killed`);
      this.#killEverything();
    }, endTimeoutMs);
    this.#proceed();
  }

  #killEverything(): void {
    this.#isEnding = true;
    clearTimeout(this.#startAgain);
    this.#exitStatus = 1;
    if (!this.#running.isEmpty) logger.error(`${this.#describe()}: all are killed`);
    for (const epoch of this.#running) epoch.kill();
    this.#proceed();
  }

  #exit(status: number): void {
    logger.info(`exits with status ${status}: no child is left`);
    this.#surroundings.exit(status);
  }

  #report(): void {
    this.#surroundings.manager.status(this.#describe());
  }

  /** The epochs, newest first, with what failed last. */
  #describe(): string {
    const states = this.#running.describe();
    return [...states, ...(this.#failure === undefined ? [] : [this.#failure])].join(', ');
  }
}
