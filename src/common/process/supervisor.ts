// How a process knows that baton-restarter has started it, which starts another one whenever nobody serves.

/** The wrapper's pid, in the environment of its children. */
export const SUPERVISOR = 'BATON_RESTARTER';

/** Whether the wrapper is the parent of this process, rather than one of the processes above. */
export function isSupervised(env: NodeJS.ProcessEnv): boolean {
  return env[SUPERVISOR] === String(process.ppid);
}
