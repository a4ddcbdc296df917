#!/usr/bin/env node
// The wrapper's entry point. Signal handlers are installed before anything else is loaded: for process 1 of a container, signals
// without a handler are not delivered.

import { exitWithReason } from '../common/errors/shortages.js';
import { Signals } from '../common/process/signals.js';

const signals = new Signals();
void start();

async function start(): Promise<void> {
  try {
    const { run } = await import('./run.js');
    signals.closeDebugger();
    run(process.argv.slice(2), signals);
  } catch (error) {
    exitWithReason(error);
  }
}
