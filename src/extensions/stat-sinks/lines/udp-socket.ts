// Sends datagrams to a UDP address. The socket is connected, so that the kernel reports when the port is closed.

import type { Socket } from 'node:dgram';
import type { Condition } from '../condition.js';
import { Backlog } from './backlog.js';
import type { DatagramSocket } from './datagram-writer.js';

export class UdpSocket implements DatagramSocket {
  readonly #ip: string;
  readonly #port: number;
  readonly #condition: Condition;
  #socket: Socket | undefined;
  #isConnected = false;
  /**
   * Datagrams whose send callback is pending. node:dgram calls it in a later turn, even if the kernel accepted the datagram at
   * once.
   */
  readonly #backlog = new Backlog();
  /** Datagrams of the first flush, while the socket connects. */
  #early: Buffer[] = [];

  constructor(ip: string, port: number, condition: Condition) {
    this.#ip = ip;
    this.#port = port;
    this.#condition = condition;
  }

  begin(): void {
    this.#condition.begin();
    this.#backlog.begin();
    if (this.#socket !== undefined) return;
    // Loaded only if a sink sends over UDP.
    const { createSocket } = process.getBuiltinModule('node:dgram');
    const socket = createSocket(this.#ip.includes(':') ? 'udp6' : 'udp4');
    this.#socket = socket;
    socket.unref();
    socket.on('error', (error) => this.#failed(socket, error));
    // Not in its type: when the address is unreachable, the callback gets the error and no 'error' event is emitted.
    socket.connect(this.#port, this.#ip, (error?: Error | null) => {
      if (error) return this.#failed(socket, error);
      if (socket !== this.#socket) return;
      this.#isConnected = true;
      for (const datagram of this.#early.splice(0)) this.#send(socket, datagram, true);
    });
  }

  send(datagram: Buffer): void {
    if (this.#socket === undefined) return this.#condition.fails('its socket failed');
    if (!this.#backlog.add(datagram)) return this.#condition.fails('its backlog is full');
    if (this.#isConnected) this.#send(this.#socket, datagram, true);
    else this.#early.push(datagram);
  }

  room(): Promise<void> | undefined {
    return this.#backlog.room();
  }

  async close(): Promise<void> {
    await this.#backlog.drained();
    this.#socket?.close();
    this.#socket = undefined;
  }

  #send(socket: Socket, datagram: Buffer, mayRepeat: boolean): void {
    socket.send(datagram, (error) => {
      if (socket !== this.#socket) return;
      if (error !== null) this.#condition.fails(isRefusal(error) ? 'connection refused' : error.message);
      // The error is about an earlier datagram; this one was not sent.
      if (mayRepeat && error !== null && isRefusal(error)) return this.#send(socket, datagram, false);
      this.#backlog.remove(datagram);
      if (error === null) this.#condition.sent();
    });
  }

  /** Called when the socket is no longer usable. The next flush opens another. */
  #failed(socket: Socket, error: Error): void {
    if (socket !== this.#socket) return;
    this.#condition.fails(error.message, this.#early.splice(0).length);
    this.#backlog.clear();
    socket.close();
    this.#socket = undefined;
    this.#isConnected = false;
  }
}

function isRefusal(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
}
