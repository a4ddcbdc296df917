// Blocks the calling thread: before it exits, and where nothing can be asynchronous.

const NEVER = new Int32Array(new SharedArrayBuffer(4));

export function blockThread(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms);
}
