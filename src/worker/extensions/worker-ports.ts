// The worker's ends of the ports between extensions and their parts on the primary.

import type { WorkerPort } from '../../extensions/factories.js';

type Send = (name: string, message: unknown, transfer: readonly ArrayBuffer[]) => void;

export class WorkerPorts {
  readonly #worker: number;
  readonly #send: Send;
  readonly #states: Map<string, unknown>;
  readonly #ports = new Map<string, Port>();

  /** @param states the published states, by name */
  constructor(worker: number, states: Readonly<Record<string, unknown>>, send: Send) {
    this.#worker = worker;
    this.#states = new Map(Object.entries(states));
    this.#send = send;
  }

  /** Returns the port of that name. */
  port(name: string): WorkerPort {
    let port = this.#ports.get(name);
    if (port === undefined) {
      port = new Port(this.#worker, this.#states.get(name), (message, transfer) => this.#send(name, message, transfer));
      this.#ports.set(name, port);
    }
    return port;
  }

  /** Called when the primary has published a state. */
  changed(name: string, state: unknown): void {
    this.#states.set(name, state);
    const port = this.#ports.get(name);
    if (port === undefined) return;
    port.state = state;
    port.onState?.(state);
  }
}

class Port implements WorkerPort {
  readonly worker: number;
  state: unknown;
  onState: ((state: unknown) => void) | undefined;
  readonly send: (message: unknown, transfer?: readonly ArrayBuffer[]) => void;

  constructor(worker: number, state: unknown, send: (message: unknown, transfer: readonly ArrayBuffer[]) => void) {
    this.worker = worker;
    this.state = state;
    this.send = (message, transfer = []) => send(message, transfer);
  }
}
