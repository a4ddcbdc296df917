// The wrapper's log: one line per event on standard output, in a layout similar to Baton's.

import { LogDestination } from '../log/log-destination.js';
import { compileLogFormat } from '../log/log-format.js';
import { LogSink } from '../log/log-sink.js';
import { RootLogger } from '../log/root-logger.js';

/** Not process.stdout: that makes a pipe non-blocking, so the children, which inherit it, would lose output when it is full. */
const STDOUT = 1;

const sink = new LogSink(undefined, STDOUT);
const destination = new LogDestination(sink, {
  format: compileLogFormat('[%Y-%m-%d %T.%e][%P][%l][%n] %v'),
  singleEntryStacks: false,
  threadId: () => process.pid,
});

export const logger = new RootLogger(destination).child({ name: 'restarter' }, 'info');

process.on('exit', () => sink.drain());
