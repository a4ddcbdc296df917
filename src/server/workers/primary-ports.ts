// Messages between an extension's parts on the primary and on the workers: plain data, addressed by the extension's name.

import type { PrimaryPort } from '../../extensions/factories.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import type { ToWorker } from '../../worker/messages/messages.js';

export class PrimaryPorts {
  readonly #workers: number;
  readonly #broadcast: (message: ToWorker) => void;
  readonly #ports = new Map<string, Port>();

  constructor(workers: number, broadcast: (message: ToWorker) => void) {
    this.#workers = workers;
    this.#broadcast = broadcast;
  }

  /** Returns the port with that name, which is created on first use. */
  port(name: string): PrimaryPort {
    let port = this.#ports.get(name);
    if (port === undefined) {
      port = new Port(this.#workers, (state) => this.#broadcast({ kind: 'extension-state', name, state }));
      this.#ports.set(name, port);
    }
    return port;
  }

  /** The last published state of each port, for starting workers. */
  get states(): Readonly<Record<string, unknown>> {
    return Object.fromEntries([...this.#ports].map(([name, { state }]) => [name, state]));
  }

  receive(worker: number, name: string, message: unknown): void {
    this.#ports.get(name)?.onMessage?.(worker, message);
  }

  workerDied(worker: number): void {
    const what = "internal error: an extension failed to handle a worker's death";
    forEachGuarded(this.#ports.values(), what, (port) => port.onWorkerDeath?.(worker));
  }
}

class Port implements PrimaryPort {
  readonly workers: number;
  onMessage: ((worker: number, message: unknown) => void) | undefined;
  onWorkerDeath: ((worker: number) => void) | undefined;
  state: unknown;
  readonly #send: (state: unknown) => void;

  constructor(workers: number, send: (state: unknown) => void) {
    this.workers = workers;
    this.#send = send;
  }

  publish(state: unknown): void {
    this.state = state;
    this.#send(state);
  }
}
