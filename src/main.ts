#!/usr/bin/env node
// Baton's entry. Signals are listened for before anything else is loaded: until somebody listens for SIGUSR1, Node answers it
// by opening its debugger port, and a SIGTERM during start-up must end the process in order.

import inspector from 'node:inspector';
import { Signals } from './server/signals.js';

const signals = new Signals();
// A SIGUSR1 that came before this line has opened the port: it counts as received.
if (inspector.url() !== undefined && !process.execArgv.some((argument) => argument.startsWith('--inspect'))) {
  inspector.close();
  signals.received('SIGUSR1');
}

const { run } = await import('./cli/run.js');
process.exitCode = await run(process.argv.slice(2), signals);
