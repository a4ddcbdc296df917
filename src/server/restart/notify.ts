// What the process that has started this one hears of it, if it listens on NOTIFY_SOCKET (sd_notify(3)): systemd, or the wrapper.

import { messageOf } from '../../common/errors/errors.js';
import { notifyAddress, watchdogIntervalMs } from '../../io/notify/notify-address.js';
import { NotifyQueue } from '../../io/notify/notify-queue.js';
import type { NativeMessageSocket, NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('main');

export class Notifier {
  readonly #socket: NativeMessageSocket;
  readonly #queue: NotifyQueue;
  readonly #signsOfLife: NodeJS.Timeout | undefined;

  private constructor(shim: NativeShim, address: Uint8Array, intervalMs: number | undefined) {
    this.#socket = shim.watchMessages(shim.openMeetingSocket(UNNAMED), {
      onMessage: (_bytes, fds) => fds.forEach(shim.closeDescriptor),
      onWritable() {},
      onEnd: (errno) => logger.warning(`the socket to NOTIFY_SOCKET ended with errno ${errno}`),
    });
    this.#queue = new NotifyQueue(
      (message) => this.#socket.sendTo(address, Buffer.from(message), []),
      (message, error) => logger.warning(`cannot say '${message}' on NOTIFY_SOCKET: ${messageOf(error)}`),
    );
    // Twice as often as is asked for, as sd_watchdog_enabled(3) recommends.
    if (intervalMs !== undefined) this.#signsOfLife = setInterval(() => this.#queue.signOfLife(), intervalMs / 2);
  }

  /** Undefined when nobody listens. Says something at once: so the wrapper knows that it will be told when this is live. */
  static open(shim: NativeShim, env: NodeJS.ProcessEnv): Notifier | undefined {
    try {
      const address = notifyAddress(env);
      if (address === undefined) return undefined;
      const notifier = new Notifier(shim, address, watchdogIntervalMs(env));
      notifier.#queue.say('STATUS=initializing');
      return notifier;
    } catch (error) {
      logger.warning(`nobody can be told that this server is live: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** It serves, and what it has taken over from is no longer needed. */
  live(): void {
    this.#queue.say('READY=1\nSTATUS=live');
  }

  /** It will leave, after `what`. */
  stopping(what: 'draining' | 'shutting down'): void {
    this.#queue.say(`STOPPING=1\nSTATUS=${what}`);
  }

  close(): void {
    clearInterval(this.#signsOfLife);
    this.#queue.close();
    this.#socket.close();
  }
}

/** The kernel finds a free abstract name for an address without one: AF_UNIX alone, in the machine's byte order. */
const UNNAMED = new Uint8Array(Uint16Array.of(1).buffer);
