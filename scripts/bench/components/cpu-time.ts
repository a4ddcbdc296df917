/** Returns the CPU time of this process, which other processes do not affect. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
