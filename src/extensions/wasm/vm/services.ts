// What VMs use of the thread that they run on. A trial of a module has services without effect.

import type { Timers } from '../../sdk.js';
import type { Result } from '../abi.js';
import type { Pairs } from './pairs.js';

export interface VmServices {
  /** Milliseconds since 1970. */
  realtimeMs(): number;
  readonly timers: Timers;
  readonly metrics: Metrics;
  readonly calls: HttpCalls;
  readonly shared: SharedState;
}

/** Stats that modules define. */
export interface Metrics {
  counter(name: string): { add(amount: number): void };
  gauge(name: string): { set(value: number): void };
  histogram(name: string): { record(value: number): void };
}

/** Requests of modules to hosts of clusters. */
export interface HttpCalls {
  /** Begins a call. Returns a result other than Ok if there is none; `done` is called later otherwise, perhaps at once. */
  start(request: WasmCallRequest, done: (answer: WasmCallAnswer) => void): WasmCall | Result;
}

export interface WasmCallRequest {
  readonly cluster: string;
  readonly headers: Pairs;
  readonly body: Buffer;
  readonly trailers: Pairs;
  /** 0: no limit. */
  readonly timeoutMs: number;
}

/** The response of a host; without headers the call has failed. */
export interface WasmCallAnswer {
  readonly headers: Pairs;
  readonly body: Buffer;
}

export interface WasmCall {
  cancel(): void;
}

/** Data and queues of the process. Keys and values have one character a byte. */
export interface SharedState {
  get(vmId: string, key: string): { readonly value: Buffer; readonly cas: number } | Result;
  /** `cas`: 0, or the number that the value must have. */
  set(vmId: string, key: string, value: Buffer, cas: number): Result;
  /** Returns the queue's number; `isReady` is called on this thread when it has an item; undefined: no room. */
  registerQueue(vmId: string, name: string, owner: object, isReady: (token: number) => void): number | undefined;
  resolveQueue(vmId: string, name: string): number | undefined;
  enqueue(token: number, value: Buffer): Result;
  dequeue(token: number): Buffer | Result;
  /** The VM `owner` has ended: it is not notified any more. */
  leave(owner: object): void;
  /** Drops data and queues. */
  forget(vmId: string): void;
}
