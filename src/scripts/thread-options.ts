// The options of Node for threads that evaluate modules.

/** vm.SourceTextModule is behind a flag, and Node warns of it in each thread. */
export const SCRIPT_THREAD_OPTIONS: readonly string[] = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
];
