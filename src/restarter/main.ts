#!/usr/bin/env node
// The wrapper's entry. Signals are listened for before anything else is loaded: as process 1 of a container, a signal that
// nobody listens for is not even delivered.

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
