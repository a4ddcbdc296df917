// Notifies the service manager (sd_notify(3)): readiness, reloads, the end, a status line, watchdog pings.

import { messageOf } from '../common/errors/errors.js';
import { notifyAddress } from '../io/notify/notify-address.js';
import { NotifyQueue } from '../io/notify/notify-queue.js';
import { logger } from './log.js';
import type { NotifySocket } from './notify-socket.js';

/** A no-op when NOTIFY_SOCKET is not set. */
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
      (message, error) => logger.warning(`the service manager cannot be notified of '${message}': ${String(error)}`),
    );
  }

  /** Notifies that the service is ready, or that a reload has finished, successful or not; the status contains the result. */
  ready(status: string): void {
    this.#isReady = true;
    this.#isReloading = false;
    this.#status = status;
    // This wrapper remains the main process: it handles SIGHUP and SIGTERM, while epochs change.
    this.#queue?.notify(`READY=1\nMAINPID=${process.pid}\nSTATUS=${status}`);
  }

  /** Begins a reload, which ready() or reloaded() ends. A service that was never ready is starting, not reloading. */
  reloading(): void {
    if (!this.#isReady || this.#isReloading) return;
    this.#isReloading = true;
    // hrtime is CLOCK_MONOTONIC; Type=notify-reload compares it with the time of its signal.
    this.#queue?.notify(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  /** Ends a reload without changes, if one has begun. */
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

  pingWatchdog(): void {
    this.#queue?.pingWatchdog();
  }
}

function addressIn(env: NodeJS.ProcessEnv): Uint8Array | undefined {
  try {
    return notifyAddress(env);
  } catch (error) {
    logger.warning(`the service manager is not notified: ${messageOf(error)}`);
    return undefined;
  }
}
