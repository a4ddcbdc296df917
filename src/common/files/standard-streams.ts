// Paths of the process's own standard output and error. These are written through the existing descriptors: a socket cannot
// be opened by its path, and a second file description would overwrite what the first one wrote.

const STANDARD_STREAMS: ReadonlyMap<string, number> = new Map([
  ['/dev/stdout', 1],
  ['/dev/fd/1', 1],
  ['/proc/self/fd/1', 1],
  ['/dev/stderr', 2],
  ['/dev/fd/2', 2],
  ['/proc/self/fd/2', 2],
]);

/** Returns the descriptor of standard output or error; undefined for any other path. */
export function standardStream(path: string): number | undefined {
  return STANDARD_STREAMS.get(path);
}
