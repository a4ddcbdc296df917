// Detects that baton-restarter, which starts a new process whenever none is serving, started this process.

/** Environment variable with the wrapper's pid. */
export const SUPERVISOR = 'BATON_RESTARTER';

/** Returns whether the wrapper is the parent of this process, and not a more distant ancestor. */
export function isSupervised(env: NodeJS.ProcessEnv): boolean {
  return env[SUPERVISOR] === String(process.ppid);
}
