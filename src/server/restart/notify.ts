// What the process that has started this one hears of it, if it listens on NOTIFY_SOCKET (sd_notify(3)): systemd, or the wrapper.

import { messageOf } from '../../common/errors.js';
import { notifyAddress, watchdogIntervalMs } from '../../io/notify-address.js';
import type { NativeMessageSocket, NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';

const logger = getLogger('main');

/** How soon it is tried again where the receiver has no room: that a server is live must not get lost. */
const RETRY_MS = 100;

export class Notifier {
  readonly #socket: NativeMessageSocket;
  readonly #address: Uint8Array;
  readonly #signsOfLife: NodeJS.Timeout | undefined;
  readonly #waiting: string[] = [];
  #retry: NodeJS.Timeout | undefined;

  private constructor(shim: NativeShim, address: Uint8Array, intervalMs: number | undefined) {
    this.#address = address;
    this.#socket = shim.watchMessages(shim.openMeetingSocket(UNNAMED), {
      onMessage: (_bytes, fds) => fds.forEach(shim.closeDescriptor),
      onWritable() {},
      onEnd: (errno) => logger.warning(`the socket to NOTIFY_SOCKET ended with errno ${errno}`),
    });
    // Twice as often as is asked for, as sd_watchdog_enabled(3) recommends.
    if (intervalMs !== undefined) this.#signsOfLife = setInterval(() => this.#sayAlive(), intervalMs / 2);
  }

  /** Undefined when nobody listens. Says something at once: so the wrapper knows that it will be told when this is live. */
  static open(shim: NativeShim, env: NodeJS.ProcessEnv): Notifier | undefined {
    try {
      const address = notifyAddress(env);
      if (address === undefined) return undefined;
      const notifier = new Notifier(shim, address, watchdogIntervalMs(env));
      notifier.#say('STATUS=initializing');
      return notifier;
    } catch (error) {
      logger.warning(`nobody can be told that this server is live: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** It serves, and what it has taken over from is no longer needed. */
  live(): void {
    this.#say('READY=1\nSTATUS=live');
  }

  /** It will leave, after `what`. */
  stopping(what: 'draining' | 'shutting down'): void {
    this.#say(`STOPPING=1\nSTATUS=${what}`);
  }

  close(): void {
    clearInterval(this.#signsOfLife);
    clearTimeout(this.#retry);
    this.#socket.close();
  }

  /** Whoever does not read needs no further sign. */
  #sayAlive(): void {
    if (this.#waiting.length === 0) this.#say('WATCHDOG=1');
  }

  #say(message: string): void {
    this.#waiting.push(message);
    if (this.#retry === undefined) this.#sendWaiting();
  }

  #sendWaiting(): void {
    this.#retry = undefined;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        if (!this.#socket.sendTo(this.#address, Buffer.from(first), [])) {
          this.#retry = setTimeout(() => this.#sendWaiting(), RETRY_MS).unref();
          return;
        }
      } catch (error) {
        logger.warning(`cannot say '${first.replaceAll('\n', ' ')}' on NOTIFY_SOCKET: ${messageOf(error)}`);
      }
      this.#waiting.shift();
    }
  }
}

/** The kernel finds a free abstract name for an address without one: AF_UNIX alone, in the machine's byte order. */
const UNNAMED = new Uint8Array(Uint16Array.of(1).buffer);
