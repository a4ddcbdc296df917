// The wrapper's log: a line an event on standard output, in a layout much as Baton's own.

import { LogDestination } from '../log/log-destination.js';
import { compileLogFormat } from '../log/log-format.js';
import { LogSink } from '../log/log-sink.js';
import { RootLogger } from '../log/root-logger.js';

/**
 * Not by process.stdout: that makes a pipe non-blocking, and the children, which inherit it, would lose output for which it has no
 * room.
 */
const STDOUT = 1;

const sink = new LogSink(undefined, STDOUT);
const destination = new LogDestination(sink, {
  format: compileLogFormat('[%Y-%m-%d %T.%e][%P][%l][%n] %v'),
  singleEntryStacks: false,
  threadId: () => process.pid,
});

export const logger = new RootLogger(destination).child({ name: 'restarter' }, 'info');

process.on('exit', () => sink.drain());
