#!/usr/bin/env node
// Baton's entry. Signals are listened for before anything else is loaded.

import { exitWithReason } from './common/errors/shortages.js';
import { Signals } from './common/process/signals.js';

const signals = new Signals();
void start();

async function start(): Promise<void> {
  try {
    const { run } = await import('./cli/run.js');
    signals.closeDebugger();
    process.exitCode = await run(process.argv.slice(2), signals);
  } catch (error) {
    exitWithReason(error);
  }
}
