// What the process that has started this one hears of it, if it listens on NOTIFY_SOCKET (sd_notify(3)): systemd, or the wrapper.
//
// To systemd all epochs are one service. Only the epoch that serves may speak for it: what a replaced one said of its own end would
// end the service. Variables that begin with X_ are ignored by systemd; the wrapper follows each epoch by them.

import { readFileSync } from 'node:fs';
import { messageOf } from '../../common/errors/errors.js';
import { notifyAddress, watchdogIntervalMs } from '../../io/notify/notify-address.js';
import { NotifyQueue } from '../../io/notify/notify-queue.js';
import type { NativeMessageSocket, NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('main');

export class Notifier {
  readonly #env: NodeJS.ProcessEnv;
  readonly #socket: NativeMessageSocket;
  readonly #queue: NotifyQueue;
  readonly #signsOfLife: NodeJS.Timeout | undefined;
  readonly #follows: boolean;
  /** This process serves, or nobody does. */
  #speaksForService: boolean;

  private constructor(shim: NativeShim, env: NodeJS.ProcessEnv, address: Uint8Array, follows: boolean) {
    this.#env = env;
    this.#follows = follows;
    this.#speaksForService = !follows;
    this.#socket = shim.watchMessages(shim.openMeetingSocket(UNNAMED), {
      onMessage: (_bytes, fds) => fds.forEach(shim.closeDescriptor),
      onWritable() {},
      onEnd: (errno) => logger.warning(`the socket to NOTIFY_SOCKET ended with errno ${errno}`),
    });
    this.#queue = new NotifyQueue(
      (message) => this.#socket.sendTo(address, Buffer.from(message), []),
      (message, error) => logger.warning(`cannot say '${message}' on NOTIFY_SOCKET: ${messageOf(error)}`),
    );
    const intervalMs = watchdogIntervalMs(env);
    // Twice as often as is asked for, as sd_watchdog_enabled(3) recommends.
    if (intervalMs !== undefined) this.#signsOfLife = setInterval(() => this.#giveSignOfLife(), intervalMs / 2);
  }

  /**
   * Undefined when nobody listens. Says something at once: so the wrapper knows that it will be told when this is live.
   * `follows`: another epoch serves until then.
   */
  static open(shim: NativeShim, env: NodeJS.ProcessEnv, follows: boolean): Notifier | undefined {
    try {
      const address = notifyAddress(env);
      if (address === undefined) return undefined;
      const notifier = new Notifier(shim, env, address, follows);
      notifier.#queue.notify(follows ? 'X_BATON_EPOCH=initializing' : 'STATUS=initializing');
      return notifier;
    } catch (error) {
      logger.warning(`nobody can be told that this server is live: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** It serves: what it has taken over from is no longer needed, or what had replaced it is dead. */
  live(): void {
    // Otherwise the service manager has started this process itself, and knows it.
    const isAnother = this.#follows || !this.#speaksForService;
    this.#speaksForService = true;
    this.#queue.notify(`READY=1\n${isAnother ? `MAINPID=${mainPid(this.#env)}\n` : ''}STATUS=live`);
    // A wrapper that has heard none of this epoch for a while takes it for dead.
    if (isAnother && this.#signsOfLife !== undefined) this.#giveSignOfLife();
  }

  /** It accepts from now on, beside the epoch that it replaces, which does not know it yet. */
  beginsToServe(): void {
    if (this.#follows) this.#queue.notify('X_BATON_EPOCH=serving');
  }

  /** Another epoch serves, and speaks. */
  replaced(): void {
    this.#speaksForService = false;
    this.#queue.notify('X_BATON_EPOCH=replaced');
  }

  /** It will leave, after `what`. */
  stopping(what: 'draining' | 'shutting down'): void {
    const state = `X_BATON_EPOCH=${what === 'draining' ? 'draining' : 'leaving'}`;
    this.#queue.notify(this.#speaksForService ? `STOPPING=1\nSTATUS=${what}\n${state}` : state);
  }

  close(): void {
    clearInterval(this.#signsOfLife);
    this.#queue.close();
    this.#socket.close();
  }

  #giveSignOfLife(): void {
    if (this.#speaksForService) this.#queue.pingWatchdog();
  }
}

/**
 * The main process of the service: the one that systemd has started, if this process descends from that, for it is a wrapper that
 * takes the signals and outlives all epochs; otherwise this process.
 */
function mainPid({ SYSTEMD_EXEC_PID: started = '' }: NodeJS.ProcessEnv): number {
  const wrapper = Number(started);
  if (!Number.isSafeInteger(wrapper) || wrapper < 1) return process.pid;
  for (let pid = process.ppid; pid > 0; pid = parentOf(pid)) if (pid === wrapper) return wrapper;
  return process.pid;
}

/** 0 when there is none, or it cannot be seen. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Behind the name, which may hold anything: state and parent.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) || 0;
  } catch {
    return 0;
  }
}

/** The kernel finds a free abstract name for an address without one: AF_UNIX alone, in the machine's byte order. */
const UNNAMED = new Uint8Array(Uint16Array.of(1).buffer);
