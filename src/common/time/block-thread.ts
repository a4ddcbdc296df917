// Waiting that leaves the thread to nobody else: for its end, and for what cannot be asynchronous.

const NEVER = new Int32Array(new SharedArrayBuffer(4));

export function blockThread(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
