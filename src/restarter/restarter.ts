// The wrapper's decisions: when an epoch starts, when it counts as live, and how to react to the end of a child.

import type { SignalName } from '../common/process/signals.js';
import { OccasionalLog } from '../log/occasional-log.js';
import { BackOff } from './back-off.js';
import { Epoch, type EpochEvents, type EpochExit } from './epoch.js';
import { logger } from './log.js';
import type { Options } from './options.js';
import { RunningEpochs } from './running-epochs.js';
import type { ServiceManager } from './service-manager.js';

/** Logged characters of a message from a process that is not a child. */
const MAX_NAMES_LOGGED = 200;
/** Such messages that are logged at a time. */
const MAX_FOREIGN_LOGGED = 5;

/**
 * Maximum delay of a restart while no epoch serves. It is short, because the next epoch probably becomes live as the last one did,
 * and doubles with each epoch that does not.
 */
const MAX_OUTAGE_MS = 1000;
/** How long a child may take to free the socket names that another one needs. */
const FREE_NAMES_MS = 5000;

export interface RestarterContext {
  /** Environment of the children, except for RESTART_EPOCH. */
  readonly env: NodeJS.ProcessEnv;
  readonly manager: ServiceManager;
  /** Called before a child starts, whose notifications must be received. */
  ensureNotifySocket(): void;
  /** Ends this process. */
  exit(status: number): void;
}

export class Restarter implements EpochEvents {
  readonly #options: Options;
  readonly #context: RestarterContext;
  readonly #backOff = new BackOff();
  readonly #foreign = new OccasionalLog((text) => logger.warning(text), MAX_FOREIGN_LOGGED);
  readonly #running = new RunningEpochs();
  /** The newest live epoch; or the one that will serve again because the newest is dead. */
  #current: Epoch | undefined;
  /** An epoch that is not live yet, or is being killed because it never was. */
  #starting: Epoch | undefined;
  /** SIGHUP was received, and its epoch has not started yet. */
  #isNextRequested = false;
  /** The serving epoch has died, and none has replaced it yet. */
  #needsReplacement = false;
  /** Number of consecutive epochs that died before they were live. */
  #failures = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  /** The next epoch starts when the holder of its socket names has ended. */
  #awaitsNames = false;
  /** A child has sent a notification: so the program supports sd_notify. */
  #usesNotify = false;
  /** The last failed start. */
  #failure: string | undefined;
  #isEnding = false;
  /** Exit status of this process once the last child has ended after a request to end. */
  #exitStatus = 0;

  constructor(options: Options, context: RestarterContext) {
    this.#options = options;
    this.#context = context;
  }

  start(): void {
    this.#isNextRequested = true;
    this.#proceed();
  }

  receive(signal: SignalName): void {
    logger.info(`received ${signal}`);
    if (signal === 'SIGHUP') this.#reload();
    else if (signal === 'SIGUSR1') for (const epoch of this.#running) epoch.reopenLogs();
    else this.#end();
  }

  /** Returns whether `pid` is a child that this wrapper has started. */
  owns(pid: number): boolean {
    return this.#running.find(pid) !== undefined;
  }

  /** Handles a message on the notify socket. */
  receiveNotification(pid: number, assignments: ReadonlyMap<string, string>): void {
    const epoch = this.#running.find(pid);
    if (epoch === undefined) {
      const names = [...assignments.keys()]
        .join(', ')
        .replaceAll(/[^ -~]/g, '?')
        .slice(0, MAX_NAMES_LOGGED);
      this.#foreign.log(`process ${pid}, which is not a child, sent ${names}: ignored`);
      return;
    }
    this.#usesNotify = true;
    if (assignments.get('WATCHDOG') === '1') epoch.lastWatchdogMs = performance.now();
    const state = assignments.get('X_BATON_EPOCH');
    epoch.hasFreedNames ||= state === 'leaving';
    epoch.isStopping ||= assignments.get('STOPPING') === '1' || state === 'leaving';
    epoch.accepts ||= state === 'serving';
    if (state === 'replaced') this.#replaced(epoch);
    if (assignments.get('READY') === '1' && epoch.phase === 'starting') this.#becomesLive(epoch, 'is live');
    else if (assignments.get('READY') === '1' && (epoch.phase === 'draining' || epoch.isReplaced))
      this.#servesAgain(epoch);
    this.#report();
  }

  /**
   * Returns whether the newest live child is healthy: if it has ever sent a watchdog ping, the last one is at most `maxAgeMs`
   * old.
   */
  isHealthy(maxAgeMs: number): boolean {
    if (this.#current?.phase !== 'live') return false;
    const last = this.#current.lastWatchdogMs;
    return last === undefined || performance.now() - last <= maxAgeMs;
  }

  onExit(epoch: Epoch, { isClean, how }: EpochExit): void {
    this.#running.delete(epoch);
    logger[isClean ? 'info' : 'warning'](`epoch ${epoch.number} (pid ${epoch.pid ?? 'none'}) exited: ${how}`);
    const wasStarting = epoch === this.#starting;
    if (wasStarting) this.#starting = undefined;
    const wasCurrent = epoch === this.#current;
    if (wasCurrent) this.#current = undefined;
    if (!this.#isEnding) {
      if (!isClean && epoch.phase !== 'leaving' && this.#endsOnFailure()) return this.#killEverything();
      if (wasCurrent && epoch.phase !== 'leaving') this.#onServingLost(epoch);
      if (wasStarting && epoch.hasServed) this.#onTakeoverDeath(epoch);
      else if (wasStarting) this.#onStartFailed(epoch);
    }
    this.#proceed();
  }

  /**
   * Returns whether a child's failure ends everything, as with hot-restarter.py (FACTS §8.5): on request, and for programs
   * without notifications.
   */
  #endsOnFailure(): boolean {
    return this.#options.isStrict || !this.#usesNotify;
  }

  #reload(): void {
    if (this.#isEnding) return;
    if (this.#starting !== undefined)
      logger.info(`epoch ${this.#starting.number} is starting: the next one waits for it`);
    this.#isNextRequested = true;
    this.#proceed();
  }

  /** Takes the next step after any change. */
  #proceed(): void {
    if (this.#isEnding) {
      if (this.#running.isEmpty) return this.#exit(this.#exitStatus);
    } else if (this.#starting === undefined) {
      if (this.#isNextRequested || this.#awaitsNames) this.#startNext();
      else if (this.#needsReplacement) this.#scheduleRestart();
      // The very first epoch. An epoch that was live is restarted forever: this wrapper exits with 0 only on request.
      else if (this.#running.isEmpty) return this.#exit(1);
    }
    this.#report();
  }

  #startNext(): void {
    clearTimeout(this.#restartTimer);
    this.#restartTimer = undefined;
    if (this.#isNextRequested) this.#context.manager.reloading();
    // Without a live epoch there is no parent. The number of a failed epoch is reused, because a child looks for the parent with
    // the number before its own.
    const number = this.#current === undefined ? 0 : this.#current.number + 1;
    const holder = this.#running.holderOfNames(number);
    // Continues when that one has ended.
    this.#awaitsNames = holder !== undefined;
    if (holder !== undefined) return this.#freeNames(holder, number);
    this.#isNextRequested = false;
    this.#context.ensureNotifySocket();
    const { program, args, liveTimeoutMs, silenceMs } = this.#options;
    const epoch = new Epoch(number, [program, ...args], this.#context.env, this);
    this.#running.add(epoch);
    this.#starting = epoch;
    logger.info(`epoch ${number} started (pid ${epoch.pid ?? 'none'}): ${[program, ...args].join(' ')}`);
    if (!this.#usesNotify) epoch.timers.push(setTimeout(() => this.#onSilence(epoch), silenceMs));
    if (liveTimeoutMs !== Number.POSITIVE_INFINITY) {
      epoch.timers.push(setTimeout(() => this.#onLiveTimeout(epoch), liveTimeoutMs));
    }
  }

  #freeNames(old: Epoch, number: number): void {
    if (old.phase === 'leaving') return;
    logger.warning(`${old.describe()} still has the socket names that epoch ${number} needs: terminating it`);
    old.terminate();
    old.timers.push(setTimeout(() => old.kill(), FREE_NAMES_MS));
  }

  #scheduleRestart(): void {
    if (this.#restartTimer !== undefined) return;
    const backOffMs = this.#backOff.next();
    const isOutage = this.#current === undefined;
    const maxMs = MAX_OUTAGE_MS * 2 ** this.#failures;
    const delayMs = isOutage ? Math.min(backOffMs, maxMs) : backOffMs;
    logger.info(`starts again in ${delayMs / 1000} s`);
    this.#restartTimer = setTimeout(() => this.#startNext(), delayMs);
  }

  /** Called when a program without notifications has been silent: it may not support them. */
  #onSilence(epoch: Epoch): void {
    if (!this.#usesNotify) this.#becomesLive(epoch, 'sent nothing to NOTIFY_SOCKET, and counts as live');
  }

  #onLiveTimeout(epoch: Epoch): void {
    if (!this.#usesNotify) return this.#onSilence(epoch);
    logger.error(`epoch ${epoch.number} is not live after ${this.#options.liveTimeoutMs / 1000} s: it is killed`);
    if (this.#options.isStrict) return this.#killEverything();
    // Not by SIGTERM: a child would then also end its parent, which is the serving epoch (FACTS §8.3).
    epoch.kill();
    this.#report();
  }

  #becomesLive(epoch: Epoch, how: string): void {
    logger.info(`epoch ${epoch.number} ${how}`);
    // An epoch that is not its parent has resumed serving after the parent's death, and no other process ends it.
    if (this.#current?.number === epoch.number - 1) this.#current.drain();
    else this.#current?.terminate();
    epoch.becomeLive(performance.now());
    this.#current = epoch;
    this.#starting = undefined;
    this.#needsReplacement = false;
    this.#failure = undefined;
    this.#context.manager.ready(this.#describe());
    this.#proceed();
  }

  /** Called when the epoch notifies that the next one serves. It does so before that one does, which may die in between. */
  #replaced(epoch: Epoch): void {
    epoch.isReplaced = true;
    if (epoch === this.#current && this.#starting !== undefined) this.#starting.hasServed = true;
    // The next one is dead already, and has been counted as never live.
    if (epoch === this.#current && this.#starting === undefined) this.#lostServing(0);
  }

  /** Called when a replaced epoch notifies that it is live: its successor has ended. */
  #servesAgain(epoch: Epoch): void {
    const dead = this.#current;
    // A third epoch has become live meanwhile, or already accepts and is about to be live.
    const isAnother = dead !== undefined && dead !== epoch && dead.number !== epoch.number + 1;
    const starting = this.#starting;
    const startsBeside = starting !== undefined && starting.number !== epoch.number + 1;
    if (isAnother || (startsBeside && starting.accepts)) return epoch.terminate();
    logger.warning(`epoch ${epoch.number} serves again`);
    epoch.serveAgain();
    this.#current = epoch;
    if (dead !== undefined && dead !== epoch) {
      this.#lostServing(this.#liveMs(dead));
      // Its end has not been observed here yet.
      dead.kill();
    }
    // The parent of an epoch that is starting is dead: the next one must take over from the serving epoch.
    if (startsBeside) starting.kill();
    this.#context.manager.ready(this.#describe());
    this.#proceed();
  }

  /** Called when the serving epoch has ended without a request, with any status: the next one must start. */
  #onServingLost(epoch: Epoch): void {
    logger.error(`the serving epoch ${epoch.number} has ended`);
    this.#lostServing(this.#liveMs(epoch));
    // A program without notifications does not resume serving.
    if (this.#usesNotify) this.#current = this.#running.predecessorOf(epoch);
  }

  /** Called when an epoch has died while taking over. Its parent, which has notified the takeover, resumes serving. */
  #onTakeoverDeath(epoch: Epoch): void {
    logger.error(`epoch ${epoch.number} died as it took over`);
    if (this.#current?.isReplaced) this.#current.drain();
    this.#lostServing(0);
  }

  #lostServing(liveMs: number): void {
    this.#needsReplacement = true;
    this.#failures = liveMs > 0 ? 0 : this.#failures + 1;
    this.#backOff.died(liveMs);
  }

  #liveMs({ liveSinceMs }: Epoch): number {
    return liveSinceMs === undefined ? 0 : performance.now() - liveSinceMs;
  }

  #onStartFailed(epoch: Epoch): void {
    const predecessor = this.#current?.phase === 'draining' ? this.#current : undefined;
    const serving = predecessor === undefined ? this.#current : undefined;
    const rest = serving === undefined ? 'none serves' : `epoch ${serving.number} keeps serving`;
    logger.error(`epoch ${epoch.number} never became live: ${rest}`);
    if (predecessor !== undefined) {
      logger.error(`epoch ${predecessor.number} does not serve again: it is killed`);
      predecessor.kill();
      this.#current = undefined;
    }
    this.#failure = `epoch ${epoch.number} failed to start`;
    this.#failures++;
    this.#context.manager.reloaded(this.#describe());
  }

  /** Handles SIGTERM and SIGINT: terminates all children, and kills those that do not end. */
  #end(): void {
    const isFirst = !this.#isEnding;
    this.#isEnding = true;
    for (const epoch of this.#running) epoch.terminate();
    if (!isFirst) return;
    clearTimeout(this.#restartTimer);
    this.#exitStatus = 0;
    this.#context.manager.stopping(this.#describe());
    const { endTimeoutMs } = this.#options;
    setTimeout(() => {
      logger.error(`not all have exited within ${endTimeoutMs / 1000} s: the rest is killed`);
      this.#killEverything();
    }, endTimeoutMs);
    this.#proceed();
  }

  #killEverything(): void {
    this.#isEnding = true;
    clearTimeout(this.#restartTimer);
    this.#exitStatus = 1;
    if (!this.#running.isEmpty) logger.error(`${this.#describe()}: all are killed`);
    for (const epoch of this.#running) epoch.kill();
    this.#proceed();
  }

  #exit(status: number): void {
    logger.info(`exits with status ${status}: no child is left`);
    this.#context.exit(status);
  }

  #report(): void {
    this.#context.manager.status(this.#describe());
  }

  /** Returns the epochs, newest first, and the last failure. */
  #describe(): string {
    const states = this.#running.describe();
    return [...states, ...(this.#failure === undefined ? [] : [this.#failure])].join(', ');
  }
}
