// Detects that a file has changed: it was written to or replaced, or a link on its path now leads elsewhere.

import { existsSync, type FSWatcher, lstatSync, readlinkSync, realpathSync, statSync, watch } from 'node:fs';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { messageOf } from '../errors/errors.js';
import { MAX_TIMER_MS } from '../time/max-timer.js';

export interface FileWatchEvents {
  /** Called when the file has changed and was then quiet for a moment. A removed file is reported when it exists again. */
  changed(): void;
  /** Called when a directory cannot be watched: changes may be detected late. */
  failed(message: string): void;
}

export interface FileWatchOptions {
  /**
   * If set, the file is checked only when this directory is replaced or an entry in it is created, removed or moved; with
   * `seesContent`, also when an entry's content is written.
   */
  readonly within?: { readonly path: string; readonly seesContent: boolean } | undefined;
  /** Interval of additional checks, for file systems that report no changes. */
  readonly pollMs?: number | undefined;
}

/** A file written in place is written in pieces: it is checked when no event has arrived for this time. */
const QUIET_MS = 200;
/** A file that never becomes quiet is checked after this time. */
const MAX_WAIT_MS = 2000;
/** Interval of retries for directories that cannot be watched for lack of descriptors or inotify watches. */
const RETRY_MS = 2000;
/** The kernel's limit of links on one path. */
const MAX_LINKS = 40;

/**
 * Returns a text that changes when the file is replaced or its content changes; '' if there is no file. Misses content that
 * changes twice within one tick of the file system's clock and keeps its size.
 */
export function fileIdentity(path: string): string {
  try {
    const { ctimeNs, dev, ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return '';
  }
}

export class FileWatch {
  readonly #path: string;
  readonly #within: FileWatchOptions['within'];
  readonly #events: FileWatchEvents;
  /** Watched directories: those that hold a name that leads to the file. */
  readonly #watchers = new Map<string, Watched>();
  /** Directories that cannot be watched and were reported. */
  readonly #unwatched = new Set<string>();
  #identity: string;
  #firstEvent = 0;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;

  /** `identity`: of the version of the file that the caller has read; a difference is reported. */
  constructor(path: string, identity: string, events: FileWatchEvents, { within, pollMs }: FileWatchOptions = {}) {
    this.#path = resolve(path);
    this.#within = within && { path: resolve(within.path), seesContent: within.seesContent };
    this.#identity = identity;
    this.#events = events;
    if (pollMs !== undefined) this.#poll = setInterval(() => this.#check(), Math.min(pollMs, MAX_TIMER_MS)).unref();
    this.#watch();
    if (fileIdentity(this.#path) !== identity) this.#onEvent();
  }

  close(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #onEvent(): void {
    const now = performance.now();
    if (this.#timer === undefined) this.#firstEvent = now;
    clearTimeout(this.#timer);
    const wait = Math.min(QUIET_MS, Math.max(0, this.#firstEvent + MAX_WAIT_MS - now));
    this.#timer = setTimeout(() => this.#check(), wait);
    this.#timer.unref();
  }

  #check(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Changes made before these watches existed are detected below.
    this.#watch();
    const identity = fileIdentity(this.#path);
    if (identity === '' || identity === this.#identity) return;
    this.#identity = identity;
    this.#events.changed();
  }

  /** Updates the watches to where links lead now. */
  #watch(): void {
    const required = this.#within === undefined ? namesOnPath(this.#path) : namesWithin(this.#within);
    for (const [directory, { inode, watcher }] of this.#watchers) {
      if (required.has(directory) && inode === inodeOf(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const [directory, names] of required) {
      const known = this.#watchers.get(directory);
      if (known === undefined) this.#watchDirectory(directory, names);
      else known.names = names;
    }
  }

  #watchDirectory(directory: string, names: Names): void {
    try {
      const watcher = watch(directory, { persistent: false });
      const watched: Watched = { watcher, names, inode: inodeOf(directory) };
      watcher.on('change', (event, name) => {
        const isRelevant =
          typeof watched.names === 'string'
            ? watched.names === 'any' || event === 'rename'
            : watched.names.has(String(name));
        // The removal of a directory is reported with its own name.
        if (name === null || isRelevant || name === basename(directory)) this.#onEvent();
      });
      watcher.on('error', (error) => {
        watcher.close();
        this.#watchers.delete(directory);
        this.#reportUnwatched(directory, `${directory} is no longer watched: ${messageOf(error)}`);
      });
      this.#watchers.set(directory, watched);
      this.#unwatched.delete(directory);
    } catch (error) {
      this.#reportUnwatched(directory, `${directory} cannot be watched: ${messageOf(error)}`);
    }
  }

  #reportUnwatched(directory: string, message: string): void {
    if (!this.#unwatched.has(directory)) this.#events.failed(message);
    this.#unwatched.add(directory);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#check();
    }, RETRY_MS).unref();
  }
}

/** Watched entries of a directory. 'moved': any that is created, removed or moved; 'any': any that is written, too. */
type Names = ReadonlySet<string> | 'moved' | 'any';

interface Watched {
  readonly watcher: FSWatcher;
  names: Names;
  /** Identifies the directory, which may be replaced by another one of the same name. */
  readonly inode: string;
}

/** Returns the names that lead to a directory, and everything in it. */
function namesWithin({ path: directory, seesContent }: NonNullable<FileWatchOptions['within']>): Map<string, Names> {
  const found: Map<string, Names> = namesOnPath(directory);
  try {
    found.set(realpathSync(directory), seesContent ? 'any' : 'moved');
  } catch {
    // Then the missing part of its path is watched.
  }
  return found;
}

/**
 * Returns directories, and for each the names in it that lead to the file: the file's own name and each link on its path. A
 * path that ends before the file's directory is watched where it ends.
 */
function namesOnPath(path: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const note = (directory: string, name: string) => {
    const names = found.get(directory);
    if (names === undefined) found.set(directory, new Set([name]));
    else names.add(name);
  };
  let real = parse(path).root;
  let rest = path.slice(real.length).split('/');
  let links = 0;
  while (rest.length > 0) {
    const name = rest.shift()!;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      real = dirname(real);
      continue;
    }
    const link = linkAt(join(real, name));
    if (link !== undefined && ++links <= MAX_LINKS) {
      note(real, name);
      if (link.startsWith('/')) real = parse(link).root;
      rest = [...link.split('/'), ...rest];
    } else {
      const inner = join(real, name);
      if (rest.length === 0 || !existsSync(inner)) {
        note(real, name);
        break;
      }
      real = inner;
    }
  }
  return found;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // A missing file is not a link.
    return undefined;
  }
}

function inodeOf(directory: string): string {
  try {
    const { dev, ino } = statSync(directory, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}
