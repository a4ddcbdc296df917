// Datagrams to a UDP address. The socket is connected, so that the kernel tells when nobody listens there.

import type { Socket } from 'node:dgram';
import type { Condition } from '../condition.js';
import type { DatagramSocket } from './datagram-writer.js';

/** Datagrams that may wait for the kernel. */
const MAX_PENDING = 1024;

export class UdpSocket implements DatagramSocket {
  readonly #ip: string;
  readonly #port: number;
  readonly #condition: Condition;
  #socket: Socket | undefined;
  #isConnected = false;
  #pending = 0;
  /** Of the first flush, while the socket connects. */
  #early: Buffer[] = [];

  constructor(ip: string, port: number, condition: Condition) {
    this.#ip = ip;
    this.#port = port;
    this.#condition = condition;
  }

  begin(): void {
    this.#condition.begin();
    if (this.#socket !== undefined) return;
    // Not loaded where no sink sends to UDP.
    const { createSocket } = process.getBuiltinModule('node:dgram');
    const socket = createSocket(this.#ip.includes(':') ? 'udp6' : 'udp4');
    this.#socket = socket;
    socket.unref();
    socket.on('error', (error) => this.#failed(socket, error));
    socket.connect(this.#port, this.#ip, () => {
      this.#isConnected = true;
      for (const datagram of this.#early.splice(0)) this.send(datagram);
    });
  }

  send(datagram: Buffer): void {
    if (this.#socket === undefined) return this.#condition.fails('its socket failed');
    if (!this.#isConnected && this.#early.length < MAX_PENDING) this.#early.push(datagram);
    else if (!this.#isConnected || this.#pending >= MAX_PENDING) this.#condition.fails('more comes than can be sent');
    else this.#send(this.#socket, datagram, true);
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }

  #send(socket: Socket, datagram: Buffer, mayRepeat: boolean): void {
    this.#pending++;
    socket.send(datagram, (error) => {
      this.#pending--;
      if (error === null) return this.#condition.sent();
      this.#condition.fails(isRefusal(error) ? 'nobody listens there' : error.message);
      // What was refused is an earlier datagram: this one was not sent at all.
      if (mayRepeat && isRefusal(error) && socket === this.#socket) this.#send(socket, datagram, false);
    });
  }

  /** The socket itself is of no more use: the next flush makes another. */
  #failed(socket: Socket, error: Error): void {
    if (socket !== this.#socket) return;
    this.#condition.fails(error.message, this.#early.splice(0).length);
    socket.close();
    this.#socket = undefined;
    this.#isConnected = false;
  }
}

function isRefusal(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
}
