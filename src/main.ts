#!/usr/bin/env node
// Baton's entry. Signals are listened for before anything else is loaded: until somebody listens for SIGUSR1, Node answers it
// by opening its debugger port, and a SIGTERM during start-up must end the process in order.

import inspector from 'node:inspector';
import { Signals } from './server/signals.js';

const signals = new Signals();
closeDebugger();
// The thread of Node that opens the port may be slow to do it.
setTimeout(closeDebugger, 1000).unref();

const { run } = await import('./cli/run.js');
closeDebugger();
process.exitCode = await run(process.argv.slice(2), signals);

/** A SIGUSR1 that came before somebody listened for it opens the port: it counts as received. */
function closeDebugger(): void {
  if (inspector.url() === undefined || process.execArgv.some((argument) => argument.startsWith('--inspect'))) return;
  inspector.close();
  signals.received('SIGUSR1');
}
