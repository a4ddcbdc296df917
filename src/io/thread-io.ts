// The I/O objects of a thread with connections: a transport, its memory, and timers on the transport's clock.

import type { Memory } from './memory.js';
import { MemoryRelief } from './memory-relief.js';
import type { NativeShim } from './shim.js';
import { Clock } from './time/clock.js';
import { TimerDriver } from './time/timer-driver.js';
import { bufferLimits } from './transport/buffer-limits.js';
import { Transport } from './transport/transport.js';

export interface ThreadIo {
  readonly transport: Transport;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly timers: TimerDriver;
  readonly relief: MemoryRelief;
}

export interface ThreadIoOptions {
  readonly memory: Memory;
  /** Default buffer limit of a connection in bytes. */
  readonly bufferLimit: number;
  /** Descriptors that connections may not use, see TransportOptions. */
  readonly reserve: number;
  /** Called with caught internal errors; `what` is a sentence for the log. Must not throw. */
  readonly failed: (what: string, error: unknown) => void;
}

/** Creates the objects. The caller closes the timers and destroys the transport. */
export function openThreadIo(shim: NativeShim, options: ThreadIoOptions): ThreadIo {
  const { bufferLimit, failed, memory, reserve } = options;
  const clock = new Clock();
  const timers = new TimerDriver((error) => failed('a timer failed', error), clock);
  const transport = new Transport(shim, memory, clock, bufferLimits(bufferLimit), reserve, (error, what) => {
    failed(what, error);
  });
  transport.onTurn = () => timers.wheel.setTime(clock.monotonicMs);
  return { transport, memory, clock, timers, relief: new MemoryRelief(transport, clock) };
}
