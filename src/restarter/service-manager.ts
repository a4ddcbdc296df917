// What the service manager above is told (sd_notify(3)): readiness, reloads, the end, a status line, signs of life.

import { messageOf } from '../common/errors.js';
import { notifyAddress } from '../io/notify-address.js';
import { log } from './log.js';
import type { NotifySocket } from './notify-socket.js';

/** Told nothing when NOTIFY_SOCKET is not set. */
export class ServiceManager {
  readonly #socket: NotifySocket;
  readonly #address: Uint8Array | undefined;
  readonly #waiting: string[] = [];
  #retry: NodeJS.Timeout | undefined;
  #status = '';
  #isReady = false;
  #isReloading = false;

  constructor(socket: NotifySocket, env: NodeJS.ProcessEnv) {
    this.#socket = socket;
    this.#address = addressIn(env);
  }

  /** The service is up, or done with a reload, whether that went well or not: the status tells. */
  ready(status: string): void {
    this.#isReady = true;
    this.#isReloading = false;
    this.#status = status;
    // This wrapper stays the main process: epochs come and go, and it is the one that takes SIGHUP and SIGTERM.
    this.#send(`READY=1\nMAINPID=${process.pid}\nSTATUS=${status}`);
  }

  /** Begins a reload, which ready() or reloaded() ends. What has never been ready is started, not reloaded. */
  reloading(): void {
    if (!this.#isReady || this.#isReloading) return;
    this.#isReloading = true;
    // hrtime is CLOCK_MONOTONIC; Type=notify-reload compares it with when it sent the signal.
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  /** Ends a reload, if one has begun, that has changed nothing. */
  reloaded(status: string): void {
    if (this.#isReloading) this.ready(status);
  }

  stopping(status: string): void {
    this.#status = status;
    this.#send(`STOPPING=1\nSTATUS=${status}`);
  }

  status(text: string): void {
    if (text === this.#status) return;
    this.#status = text;
    this.#send(`STATUS=${text}`);
  }

  signOfLife(): void {
    // A manager that does not read needs no further one.
    if (this.#waiting.length === 0) this.#send('WATCHDOG=1');
  }

  #send(message: string): void {
    if (this.#address === undefined) return;
    this.#waiting.push(message);
    if (this.#retry === undefined) this.#sendWaiting();
  }

  #sendWaiting(): void {
    this.#retry = undefined;
    try {
      while (this.#waiting.length > 0) {
        if (!this.#socket.send(this.#address!, this.#waiting[0]!)) {
          this.#retry = setTimeout(() => this.#sendWaiting(), RETRY_MS);
          return;
        }
        this.#waiting.shift();
      }
    } catch (error) {
      log(
        'warning',
        `the service manager cannot be told '${this.#waiting[0]!.replaceAll('\n', ' ')}': ${String(error)}`,
      );
      this.#waiting.length = 0;
    }
  }
}

const RETRY_MS = 100;

function addressIn(env: NodeJS.ProcessEnv): Uint8Array | undefined {
  try {
    return notifyAddress(env);
  } catch (error) {
    log('warning', `the service manager is told nothing: ${messageOf(error)}`);
    return undefined;
  }
}
