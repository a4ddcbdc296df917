// What the service manager above is told (sd_notify(3)): readiness, reloads, the end, a status line, signs of life.

import { messageOf } from '../common/errors/errors.js';
import { notifyAddress } from '../io/notify/notify-address.js';
import { NotifyQueue } from '../io/notify/notify-queue.js';
import { logger } from './log.js';
import type { NotifySocket } from './notify-socket.js';

/** Told nothing when NOTIFY_SOCKET is not set. */
export class ServiceManager {
  readonly #queue: NotifyQueue | undefined;
  #status = '';
  #isReady = false;
  #isReloading = false;

  constructor(socket: NotifySocket, env: NodeJS.ProcessEnv) {
    const address = addressIn(env);
    if (address === undefined) return;
    this.#queue = new NotifyQueue(
      (message) => socket.send(address, message),
      (message, error) => logger.warning(`the service manager cannot be told '${message}': ${String(error)}`),
    );
  }

  /** The service is up, or done with a reload, whether that went well or not: the status tells. */
  ready(status: string): void {
    this.#isReady = true;
    this.#isReloading = false;
    this.#status = status;
    // This wrapper stays the main process: epochs come and go, and it is the one that takes SIGHUP and SIGTERM.
    this.#queue?.notify(`READY=1\nMAINPID=${process.pid}\nSTATUS=${status}`);
  }

  /** Begins a reload, which ready() or reloaded() ends. What has never been ready is started, not reloaded. */
  reloading(): void {
    if (!this.#isReady || this.#isReloading) return;
    this.#isReloading = true;
    // hrtime is CLOCK_MONOTONIC; Type=notify-reload compares it with when it sent the signal.
    this.#queue?.notify(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  /** Ends a reload, if one has begun, that has changed nothing. */
  reloaded(status: string): void {
    if (this.#isReloading) this.ready(status);
  }

  stopping(status: string): void {
    this.#status = status;
    this.#queue?.notify(`STOPPING=1\nSTATUS=${status}`);
  }

  status(text: string): void {
    if (text === this.#status) return;
    this.#status = text;
    this.#queue?.notify(`STATUS=${text}`);
  }

  signOfLife(): void {
    this.#queue?.pingWatchdog();
  }
}

function addressIn(env: NodeJS.ProcessEnv): Uint8Array | undefined {
  try {
    return notifyAddress(env);
  } catch (error) {
    logger.warning(`the service manager is told nothing: ${messageOf(error)}`);
    return undefined;
  }
}
