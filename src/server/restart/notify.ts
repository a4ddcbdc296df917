// Notifications to the process that started this one and listens on NOTIFY_SOCKET (sd_notify(3)): systemd or baton-restarter.
//
// For systemd all epochs are one service. Only the serving epoch may speak for it: a replaced epoch's report of its own end would
// end the service. systemd ignores variables with the prefix X_, by which baton-restarter tracks each epoch.

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
  readonly #watchdogTimer: NodeJS.Timeout | undefined;
  readonly #follows: boolean;
  /** True while this process serves, and if no other process does. */
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
      (message, error) => logger.warning(`cannot send '${message}' to NOTIFY_SOCKET: ${messageOf(error)}`),
    );
    const intervalMs = watchdogIntervalMs(env);
    // Twice as often as required, as sd_watchdog_enabled(3) recommends.
    if (intervalMs !== undefined) this.#watchdogTimer = setInterval(() => this.#pingWatchdog(), intervalMs / 2);
  }

  /**
   * Returns undefined if no process listens. Sends a notification at once, so that baton-restarter expects another one when this
   * process is live. `follows`: another epoch serves until then.
   */
  static open(shim: NativeShim, env: NodeJS.ProcessEnv, follows: boolean): Notifier | undefined {
    try {
      const address = notifyAddress(env);
      if (address === undefined) return undefined;
      const notifier = new Notifier(shim, env, address, follows);
      notifier.#queue.notify(follows ? 'X_BATON_EPOCH=initializing' : 'STATUS=initializing');
      return notifier;
    } catch (error) {
      logger.warning(`cannot notify the service manager of this server's state: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** Called when this process serves: its parent is no longer needed, or the epoch that had replaced it is dead. */
  live(): void {
    // Otherwise the service manager has started this process itself and knows its pid.
    const changesMainPid = this.#follows || !this.#speaksForService;
    this.#speaksForService = true;
    this.#queue.notify(`READY=1\n${changesMainPid ? `MAINPID=${mainPid(this.#env)}\n` : ''}STATUS=live`);
    // baton-restarter assumes that an epoch is dead when its pings stop.
    if (changesMainPid && this.#watchdogTimer !== undefined) this.#pingWatchdog();
  }

  /** Called when this process begins to accept connections, alongside the epoch that it replaces, which does not know yet. */
  servingStarted(): void {
    if (this.#follows) this.#queue.notify('X_BATON_EPOCH=serving');
  }

  /** Called when another epoch serves and speaks for the service. */
  replaced(): void {
    this.#speaksForService = false;
    this.#queue.notify('X_BATON_EPOCH=replaced');
  }

  /** Called when this process begins `what`, after which it ends. */
  stopping(what: 'draining' | 'shutting down'): void {
    const state = `X_BATON_EPOCH=${what === 'draining' ? 'draining' : 'leaving'}`;
    this.#queue.notify(this.#speaksForService ? `STOPPING=1\nSTATUS=${what}\n${state}` : state);
  }

  close(): void {
    clearInterval(this.#watchdogTimer);
    this.#queue.close();
    this.#socket.close();
  }

  #pingWatchdog(): void {
    if (this.#speaksForService) this.#queue.pingWatchdog();
  }
}

/**
 * Returns the pid of the service's main process. If this process descends from the one that systemd started, that one is a wrapper,
 * which handles the signals and outlives all epochs, and it is the main process; otherwise this process is.
 */
function mainPid({ SYSTEMD_EXEC_PID: started = '' }: NodeJS.ProcessEnv): number {
  const wrapper = Number(started);
  if (!Number.isSafeInteger(wrapper) || wrapper < 1) return process.pid;
  for (let pid = process.ppid; pid > 0; pid = parentOf(pid)) if (pid === wrapper) return wrapper;
  return process.pid;
}

/** Returns 0 when the process has no parent, or none that is visible. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // After the process name, which may contain anything: state and parent.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) || 0;
  } catch {
    return 0;
  }
}

/** An address with only AF_UNIX, in native byte order: the kernel chooses a free abstract name. */
const UNNAMED = new Uint8Array(Uint16Array.of(1).buffer);
