// Paths of the process's own standard output and error, which are written to through the descriptors that there are: opening them
// is not possible for a socket, and what is written to a file through another description would be overwritten.

const STANDARD_STREAMS: ReadonlyMap<string, number> = new Map([
  ['/dev/stdout', 1],
  ['/dev/fd/1', 1],
  ['/proc/self/fd/1', 1],
  ['/dev/stderr', 2],
  ['/dev/fd/2', 2],
  ['/proc/self/fd/2', 2],
]);

/** The descriptor of standard output or error; undefined for any other path. */
export function standardStream(path: string): number | undefined {
  return STANDARD_STREAMS.get(path);
}
