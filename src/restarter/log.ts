// The wrapper's log: a line an event on standard output, in the layout of Baton's own lines.

import { writeSync } from 'node:fs';

export type Level = 'info' | 'warning' | 'error';

/**
 * Writes a line. Not by process.stdout: that makes a pipe non-blocking, and the children, which inherit it, would lose
 * output for which it has no room.
 */
export function log(level: Level, text: string): void {
  const line = `[${timestamp(new Date())}][${process.pid}][${level}][restarter] ${text}\n`;
  if (waiting.length < MOST_WAITING_BYTES) waiting = Buffer.concat([waiting, Buffer.from(line)]);
  flush();
}

const STDOUT = 1;
const RETRY_MS = 50;
/** Where nobody reads, lines are lost beyond this. */
const MOST_WAITING_BYTES = 256 * 1024;

let waiting: Buffer = Buffer.alloc(0);
let retry: NodeJS.Timeout | undefined;

process.on('exit', flush);

function flush(): void {
  try {
    while (waiting.length > 0) waiting = waiting.subarray(writeSync(STDOUT, waiting));
  } catch (error) {
    // A child may have made the pipe non-blocking. When its reader is gone, nobody misses the line.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') waiting = waiting.subarray(0, 0);
    else if (retry === undefined) retry = setTimeout(flushAgain, RETRY_MS).unref();
  }
}

function flushAgain(): void {
  retry = undefined;
  flush();
}

/** Local time, as `2026-11-20 11:42:53.193`. */
function timestamp(now: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
  return `${day} ${time}.${String(now.getMilliseconds()).padStart(3, '0')}`;
}
